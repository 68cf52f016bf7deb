# Run by gdb: prints the stack where a program of the kit prints its backtrace or dies, innermost frame first,
# a line "FUNCTION FILE:LINE" for each frame of the kit's sources, inlined calls included. gdb unwinds the program
# itself; llvm-symbolizer has to name the same frames at the same addresses.
import os, re, subprocess, sys
import gdb

for command in ("set pagination off", "set confirm off", "set debuginfod enabled off", "set breakpoint pending on"):
    gdb.execute(command)
stop = os.environ["STOP"]
if stop:
    gdb.execute("break " + stop, to_string=True)
gdb.execute("run", to_string=True)

def base(file):
    for line in open("/proc/%d/maps" % gdb.selected_inferior().pid):
        if line.rstrip().endswith("/" + os.path.basename(file)):
            return int(line.split("-")[0], 16)

def plain(name):
    return re.sub(r"[(<].*", "", re.sub(r"<.*?>+::", "::", name)).split("::")[-1]

frames, physical = [], []  # physical: an address in the call, and the frames there
signalled = True  # the innermost frame is at its address, as is one that a signal has interrupted
frame, last = gdb.newest_frame(), None
while frame is not None:
    sal = frame.find_sal()
    if frame.pc() != last:
        physical.append((frame.pc() - (0 if signalled else 1), []))
        signalled = frame.type() == gdb.SIGTRAMP_FRAME
        last = frame.pc()
    if frame.name() and sal.symtab and sal.symtab.fullname().startswith("/src/shop/"):
        physical[-1][1].append((plain(frame.name()), os.path.basename(sal.symtab.filename), sal.line))
        frames.append(physical[-1][1][-1])
    frame = frame.older()

program = gdb.current_progspace().filename
for pc, want in physical:
    if not want:
        continue
    file = gdb.solib_name(pc) or program
    out = subprocess.run(["llvm-symbolizer-19", "--obj=" + file, hex(pc - base(file))], capture_output=True, text=True).stdout.split("\n")
    got = []
    for name, place in zip(out[0:-2:2], out[1:-1:2]):
        path, line = place.split(":")[:2]
        got.append((plain(name), os.path.basename(path), int(line)))
    if got != want:
        sys.exit("gdb: %s\nllvm-symbolizer: %s" % (want, got))
with open(os.environ["TRUTH"], "w") as f:
    for frame in frames:
        f.write("%s %s:%d\n" % frame)
gdb.execute("kill", to_string=True)
gdb.execute("quit 0")
