#!/bin/sh
# What a person does with addr2line: each MODULE(+0xOFFSET) and MODULE+0xOFFSET of the log, if the module is there.
while IFS= read -r line; do
  printf '%s\n' "$line"
  found=$(printf '%s\n' "$line" | sed -nE 's|.*[ ("[](/[^ ()"]+)[( ]?\+ ?(0x[0-9a-f]+).*|\1 \2|p')
  [ -z "$found" ] || addr2line -i -f -C -p -e ${found% *} "${found#* }" 2>/dev/null
done
