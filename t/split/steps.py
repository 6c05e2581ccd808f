# For gdb, with the path of trecr-gdb.py in `script`: follows steps_through_the_crossing() of
# t/split/stacks.c instruction by instruction, and looks at the stack in each that is trecr's.
import gdb


def names():
    frame, found = gdb.newest_frame(), []
    while frame:
        found.append(frame.name())
        frame = frame.older()
    return found


def code_of_ours():
    with open("/proc/%d/maps" % gdb.selected_inferior().pid) as maps:
        for line in maps:
            fields = line.split()
            if len(fields) == 6 and "x" in fields[1] and "/lib/trecr/" in fields[5]:
                yield range(*(int(end, 16) for end in fields[0].split("-")))


def is_ours(pc):
    return any(pc in code for code in ours)


gdb.execute("set confirm off")
gdb.execute("break steps_through_the_crossing")
gdb.execute("run", to_string=True)
gdb.execute("source " + script)
ours = [code for code in code_of_ours() if code.start >> 40 != 0x48]
bottom = gdb.newest_frame().older().read_register("rsp")
beginning = names()
seen, wrong = set(), set()
while int(gdb.newest_frame().read_register("rsp")) < int(bottom):
    gdb.execute("stepi", to_string=True)
    pc = int(gdb.newest_frame().pc())
    if pc in seen or not is_ours(pc):
        continue
    seen.add(pc)
    stack = names()
    if stack[-len(beginning) :] != beginning:
        wrong.add(pc)
        print(gdb.execute("info symbol %#x" % pc, to_string=True).strip(), stack)
print("%d instructions seen, %d wrong" % (len(seen), len(wrong)))
gdb.execute("kill")
