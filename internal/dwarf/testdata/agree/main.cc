int unit_1(int), unit_2(int);

int main(int argc, char **) {
#ifdef ALONE
  return unit_1(argc);
#else
  return unit_1(argc) + unit_2(argc); // functions of both: the linker keeps one
#endif
}
