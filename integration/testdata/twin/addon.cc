// An addon of Node.js, whose leaf makes Node.js print its stack and die.
#include "inventory.h"
#include <node_api.h>

static int leaf(int account) {
  napi_fatal_error("leaf", NAPI_AUTO_LENGTH, "the leaf dies", NAPI_AUTO_LENGTH); // line: leaf
  return account;
}

static napi_value audit(napi_env env, napi_callback_info) {
  napi_value result;
  napi_create_int32(env, inventory_run(leaf, 16), &result); // line: audit-from-script
  return result;
}

extern "C" __attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  napi_value function;
  napi_create_function(env, "audit", NAPI_AUTO_LENGTH, audit, nullptr, &function);
  napi_set_named_property(env, exports, "audit", function);
  return exports;
}
