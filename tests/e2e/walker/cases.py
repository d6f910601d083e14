# SPDX-License-Identifier: Apache-2.0
"""Cases for test_python_walker.py, run under every interpreter: cases.py LIBRARY CASE.

Each compares what the walker reads with what the interpreter itself tells, on the same line. Works on
Python 3.8 and newer, and needs the standard library only.
"""
import ctypes
import functools
import importlib
import os
import sys
import tempfile
import threading
import time
import traceback

library = ctypes.CDLL(os.path.abspath(sys.argv[1]))
library.shim_record.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
library.shim_text.restype = ctypes.c_char_p
library.shim_version.restype = ctypes.c_char_p
library.shim_top.restype = ctypes.c_void_p
library.shim_truncated.restype = ctypes.c_bool
library.shim_remember.argtypes = library.shim_unchanged.argtypes = [ctypes.c_void_p]
library.shim_spin.argtypes = [ctypes.c_double, ctypes.c_uint]

ALL = 40000
checks = 0
cases = {}


def case(function):
    cases[function.__name__] = function
    return function


def attach():
    message = ctypes.create_string_buffer(1000)
    return library.shim_attach(message, 1000), message.value.decode()


def plain(text):
    """TEXT as the walker writes it: what UTF-8 cannot hold becomes U+FFFD."""
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 or c == "\0" else c for c in text)


def cut(text, size):
    return text.encode()[: size - 1].decode(errors="ignore")


def parse():
    result = []
    for record in library.shim_text().decode().split("\036")[:-1]:
        line, function, file = record.split("\037")
        result.append((file, function, int(line)))
    return result


record = functools.partial(library.shim_record, None, ALL)  # adds no Python frame of its own


def here(depth=1):
    """The caller's stack, innermost first."""
    frame, result = sys._getframe(depth), []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        result.append((cut(plain(code.co_filename), 4096), cut(plain(name), 1024), frame.f_lineno or 0))
        frame = frame.f_back
    return result


def check(count, expected):
    """COUNT is what record() gave, EXPECTED what here() gave, both on the caller's line."""
    global checks
    got = parse()
    assert count == len(got) and not library.shim_truncated()
    if got != expected:
        for at, (a, b) in enumerate(zip(got, expected)):
            if a != b:
                sys.exit("frame %d: walked %r, is %r" % (at, a, b))
        sys.exit("walked %d frames, there are %d: %r %r" % (len(got), len(expected), got[-3:], expected[-3:]))
    checks += 1
    return True


@case
def every_instruction():
    """A signal at any instruction of the interpreter finds frames that are frames, and loses few."""
    global checks
    if os.uname().machine != "x86_64":
        checks += 1  # nothing here steps by instructions
        return

    class Thing:
        def __init__(self, value):
            self.value = value

        def __call__(self):
            return self.value

        def __del__(self):
            leave(self)

    def leave(thing):
        return thing.value

    def numbers(count):
        for number in range(count):
            yield number
            deep(3)

    def deep(levels):
        return deep(levels - 1) if levels else 0

    def fail():
        raise KeyError

    text = compile("deep(2)", "text", "eval")  # codes live on, so that they can be looked at

    def program():
        things = [Thing(number) for number in numbers(4)]
        things.sort(key=lambda thing: -thing())
        for thing in things:
            try:
                fail()
            except KeyError:
                eval(text, {"deep": deep})
        return sum(map(leave, things))

    call = ctypes.pythonapi.PyObject_CallObject
    step = library.shim_step
    step.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p]
    step.restype = ctypes.py_object
    stepped = ctypes.PyDLL(library._name)["shim_step"]  # keeps the GIL
    stepped.argtypes, stepped.restype = step.argtypes, step.restype
    program()  # its caches are filled
    assert stepped(ctypes.cast(call, ctypes.c_void_p), program, None, library.shim_top()) == 6
    without, count = ctypes.c_size_t(), ctypes.c_size_t()
    seen = ctypes.POINTER(ctypes.c_void_p)()
    library.shim_steps.restype = ctypes.c_size_t
    steps = library.shim_steps(ctypes.byref(without), ctypes.byref(seen), ctypes.byref(count))
    names = {ctypes.cast(seen[i], ctypes.py_object).value.co_name for i in range(count.value)}
    known = {f.__code__.co_name for f in (program, fail, deep, numbers, leave, every_instruction)}
    known |= {"__init__", "__call__", "__del__", "<lambda>", "<listcomp>", "<module>", "main"}
    assert names <= known, names - known
    found = {"program", "fail", "deep", "leave", "__init__", "__call__"}
    # 3.11 may name a generator's frame that has gone, which nothing tells from one that has not.
    found |= set() if sys.version_info[:2] == (3, 11) else {"numbers"}
    assert found <= names, found - names
    assert steps > 10000 and without.value < steps * 0.02, (steps, without.value)
    checks += 1


@case
def nested():
    def outer():
        def inner():
            check(record(), here())
        inner()

    class Holder:
        def method(self):
            outer()

        @staticmethod
        def alone():
            Holder().method()

        @property
        def value(self):
            self.alone()
            return 1

    assert Holder().value
    # The interpreter's own way to tell a stack agrees on file, line and name.
    count, stack = record(), traceback.extract_stack()
    names = [(s.filename, s.name, s.lineno) for s in reversed(stack)]
    walked = [(file, name.rpartition(".")[2], line) for file, name, line in parse()]
    assert count == len(names) and walked == names


@case
def loops():
    for i in range(3):
        check(record(), here())
        while True:
            check(record(), here()); break
    for i in range(2000):  # until the interpreter has specialised the code
        record()
        check(record(), here()) if i % 500 == 0 else None
    try:
        raise ValueError
    except ValueError:
        check(record(), here())
    finally:
        check(record(), here())
    with open(os.devnull):
        check(
            record(), here()
        )


@case
def recursion():
    sys.setrecursionlimit(20000)

    def down(depth):
        if depth:
            return down(depth - 1)
        return check(record(), here()), len(parse())

    def run():
        assert down(10000)[1] > 10000

    threading.stack_size(512 * 1024 * 1024)  # up to 3.10 Python calls nest C calls
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert checks == 1


@case
def limits():
    def down(depth):
        if depth:
            return down(depth - 1)
        whole = here(2)  # this function's own frame differs in its line
        count = library.shim_record(None, 3)
        assert count == 3 and library.shim_truncated() and parse()[1:] == whole[:2]
        assert library.shim_record(None, 0) == 0 and library.shim_truncated()
        total = len(whole) + 1
        assert library.shim_record(None, total) == total and not library.shim_truncated()
        assert library.shim_record(None, total - 1) == total - 1 and library.shim_truncated()

    down(10)


@case
def marks():
    def top():
        return library.shim_top()

    def stopped(mark):
        count = library.shim_record(mark, ALL)
        return count, not library.shim_truncated(), [function for _, function, _ in parse()]

    mark = library.shim_top()
    assert mark and mark == library.shim_top()
    inside = top()
    assert inside and inside != mark
    assert library.shim_top() == mark
    count, whole, names = stopped(mark)
    assert count == 1 and whole and names[0].endswith("stopped"), names
    assert library.shim_record(mark, ALL) == 0 and not library.shim_truncated()
    assert library.shim_record(mark + 1, ALL) == len(here())  # a stop that never comes

    found = []
    thread = threading.Thread(target=lambda: found.append(library.shim_top()))
    thread.start()
    thread.join()
    assert found[0] and found[0] != mark


class Identity(ctypes.Structure):
    _fields_ = [("file", ctypes.c_void_p), ("name", ctypes.c_void_p),
                ("lines", ctypes.c_void_p), ("first_line", ctypes.c_int32)]


@case
def lambdas():
    first = lambda: check(record(), here())
    second = lambda: (check(record(), here()), check(record(), here()))
    assert first() and second() and (lambda: check(record(), here()))()
    slots = [Identity(), Identity()]
    take = library.shim_identity
    one, two = ctypes.byref(slots[0]), ctypes.byref(slots[1])
    a = lambda: take(one)
    b = lambda: (take(two), None)
    a(), b()
    # One file name and one name, and still two functions.
    assert (slots[0].file, slots[0].name) == (slots[1].file, slots[1].name)
    assert (slots[0].lines, slots[0].first_line) != (slots[1].lines, slots[1].first_line)
    assert slots[0].first_line == a.__code__.co_firstlineno
    assert slots[1].first_line == b.__code__.co_firstlineno
    assert slots[0].name == id(a.__code__.co_name) and slots[0].file == id(a.__code__.co_filename)


@case
def generators():
    def numbers():
        yield check(record(), here())
        for i in range(2):
            yield check(record(), here())

    def delegating():
        check(record(), here())
        yield from numbers()
        yield from (check(record(), here()) for _ in range(2))

    assert all(delegating())
    assert list(numbers()) == [True] * 3

    def receiving():
        while True:
            value = yield check(record(), here())
            if value is None:
                return

    g = receiving()
    next(g)
    g.send(1)
    try:
        g.throw(KeyError)
    except KeyError:
        pass
    g.close()


@case
def coroutines():
    import asyncio  # here: it takes as long as all the rest, and some cases run many times

    async def leaf():
        check(record(), here())
        await asyncio.sleep(0)
        return check(record(), here())

    async def ticks():
        for _ in range(3):
            await asyncio.sleep(0)
            yield check(record(), here())

    class Manager:
        async def __aenter__(self):
            check(record(), here())

        async def __aexit__(self, *_):
            check(record(), here())

    async def main():
        await leaf()
        await asyncio.gather(leaf(), leaf())
        async for _ in ticks():
            check(record(), here())
        async with Manager():
            assert [await leaf() for _ in range(2)]
        assert [x async for x in ticks()]

    asyncio.run(main())


@case
def comprehensions():
    assert [check(record(), here()) for _ in range(2)]
    assert {check(record(), here()) for _ in range(2)}
    assert {i: check(record(), here()) for i in range(2)}
    assert [[check(record(), here()) for _ in range(2)] for _ in range(2)]
    assert all(check(record(), here()) for _ in range(2))


@case
def text():
    names = ["plain", "\u00e9t\u00e9", "\u0444\u0443\u043d\u043a\u0446\u0438\u044f", "\u51fd\u6570", "\U00020000x",
             "long" * 400, "\u51fd" * 1000]
    files = ["plain.py", "caf\u00e9.py", "\u4e2d\u6587/\u6a21\u5757.py", "\U0001f40d.py", "surrogate\udc80.py", "", "<string>",
             "d/" * 3000 + "end.py", "\u4e2d" * 3000]
    for file in files:
        for name in names:
            source = "def %s():\n\n    check(record(), here())\n%s()\n" % (name, name)
            exec(compile(source, file, "exec"), dict(globals()))

    class Path(str):
        """compile() keeps a subclass of str."""

    exec(compile("check(record(), here())", Path("sub\u0444.py"), "exec"), globals())
    exec(compile("check(record(), here())", Path("sub.py"), "exec"), globals())
    eval("check(record(), here())")


@case
def bodies():
    class Body:
        check(record(), here())

        class Inner:
            [check(record(), here())]

        def __init__(self):
            check(record(), here())

        def __getattr__(self, name):
            return check(record(), here())

        def __iter__(self):
            check(record(), here())
            yield check(record(), here())

        def __lt__(self, other):
            return check(record(), here())

        def __del__(self):
            check(record(), here())

    def decorate(function):
        check(record(), here())

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            check(record(), here())
            return function(*args, **kwargs)
        return wrapper

    @decorate
    @functools.lru_cache(maxsize=None)
    @decorate
    def decorated(x=check(record(), here())):
        check(record(), here())

    decorated(1)
    for _ in range(3000):  # until class calls are specialised
        body = Body.__new__(Body)
    body = Body()

    class Hot:
        def __init__(self, i):
            if i % 500 == 0:
                check(record(), here())

    for i in range(3001):
        Hot(i)
    assert body.missing and list(body) and body < 1
    del body


@case
def callbacks():
    def key(x):
        check(record(), here())
        return x

    sorted([3, 1, 2], key=key)
    sorted([2, 1], key=lambda x: (check(record(), here()), x)[1])
    functools.reduce(lambda a, b: check(record(), here()), [1, 2, 3])
    list(map(key, [1, 2]))
    max([1, 2], key=functools.partial(key))
    back = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

    def deep(n):
        check(record(), here())
        return 0 if n == 0 else again(n - 1)

    again = back(deep)
    again(4)

    # Python, C, Python, C, …: more of the interpreter's frames than of the program's
    def down(n):
        return exactly(check(record(), here())) if n == 0 else next(map(down, [n - 1]))

    def exactly(_):
        depth = len(here())
        assert library.shim_record(None, depth) == depth and not library.shim_truncated()

    down(100)


@case
def threads():
    failures = []

    def work(n):
        try:
            for _ in range(50):
                level(n)
        except SystemExit as e:
            failures.append(e)

    def level(n):
        check(record(), here()) if n == 0 else level(n - 1)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failures, failures
    assert checks == 8 * 50


@case
def unchanged():
    remember, same = library.shim_remember, library.shim_unchanged

    def down(depth, call):
        return down(depth - 1, call) if depth else call(None)

    for call, depth, expected in [
        (remember, 5, len(here()) + 6), (same, 5, 1), (same, 4, 0), (same, 6, 0), (same, 5, 1),
        (remember, 300, len(here()) + 301), (same, 300, 1), (same, 299, 0),
    ]:
        assert down(depth, call) == expected, (call, depth)

    def spoiled():
        for step in range(10):  # one place in the code for all calls
            yield (remember if step == 0 else same)(None)
            if step:
                library.shim_spoil((step - 1) // 2)

    # As it is, then with a wrong file name, as it is, with a wrong name, …
    assert list(spoiled())[1:] == [1, 0] * 4 + [1]

    def places(first):
        if first:
            return remember(None)
        return same(None)

    assert [places(first) for first in (1, 0)][1] == 0  # another line of one function

    make = "def f(call):\n%s    return call(mark)\n"
    mark = library.shim_top()
    functions = []
    for source in (make % "", make % "", make % "\n", make.replace("f(", "g(") % ""):
        scope = {"mark": mark}
        exec(compile(source, "made.py", "exec"), scope)
        functions.append(scope.popitem()[1])
    got = []
    for f, call in [(functions[0], remember), (functions[0], same)] + [(f, same) for f in functions[1:]]:
        got.append(f(call))
    assert got == [1, 1, 0, 0, 0], got


@case
def reload():
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        path = os.path.join(folder, "changing.py")
        source = "def f(take, into):\n%s    take(into)\n"
        seen = []
        for blank in ("", "\n", "\n\n    1\n"):
            with open(path, "w") as file:
                file.write(source % blank)
            importlib.invalidate_caches()
            module = sys.modules.get("changing")
            module = importlib.reload(module) if module else importlib.import_module("changing")
            into = Identity()
            module.f(library.shim_identity, ctypes.byref(into))
            code = module.f.__code__
            seen.append((code, into))  # kept alive, so that no address is used again
            assert (into.file, into.name) == (id(code.co_filename), id(code.co_name))
            assert into.first_line == 1
        assert len({into.lines for _, into in seen}) == 3


@case
def tracing():
    """A tracer, and the interpreter's own monitoring, change where lines come from."""
    def work():
        for _ in range(3):
            check(record(), here())

    def tracer(frame, event, arg):
        return tracer

    sys.settrace(tracer)
    work()
    sys.settrace(None)
    work()
    if hasattr(sys, "monitoring"):
        m = sys.monitoring
        m.use_tool_id(m.PROFILER_ID, "test")
        m.set_events(m.PROFILER_ID, m.events.LINE | m.events.INSTRUCTION | m.events.PY_START)
        work()
        m.set_events(m.PROFILER_ID, 0)
        m.free_tool_id(m.PROFILER_ID)
        work()


class Last:
    """Its end is late in the interpreter's own."""

    def __init__(self, action):
        self.action = action

    def __del__(self):
        self.action()


@case
def finalising():
    def look(top=library.shim_top, count=record, ending=sys.is_finalizing, write=os.write):
        write(1, b"ending %d mark %d frames %d\n" % (ending(), top() or 0, count()))

    look()
    sys.last = Last(look)


@case
def exits():
    """Daemon threads go on walking while the interpreter ends, which takes its time: 50 times, in children that start
    faster than a program, ten at once."""
    children = []
    for _ in range(50):
        child = os.fork()
        if not child:
            break
        children.append(child)
        if len(children) % 10 == 0:
            ends = {os.waitpid(child, 0)[1] for child in children[-10:]}
            assert ends == {0}, ends
    else:
        return

    def linger(sleep=time.sleep):
        sleep(0.03)

    sys.last = Last(linger)

    def work(n, pause):
        library.shim_spin(30, pause) if n == 0 else work(n - 1, pause)

    for i in range(4):
        threading.Thread(target=work, args=(20 * i, 20), daemon=True).start()
    threading.Event().wait(0.02)
    check(record(), here())


@case
def attach_in_a_class_call():
    class Hot:
        def __init__(self, i):
            if i == 3000:
                Hot.result = attach()

    for i in range(3001):
        Hot(i)
    assert Hot.result == (0, ""), Hot.result


def main():
    name = sys.argv[2]
    if name == "attach":
        rc, message = attach()
        version = library.shim_version()
        print(rc, version.decode() if version else None, message, sep="|")
        return
    if not name.startswith("attach_"):
        assert attach() == (0, "")
        assert library.shim_version().decode() == sys.version.split()[0].rstrip("+")
    cases[name]()
    print("ok", name, checks)


if len(sys.argv) > 2 and sys.argv[2] == "list":
    print(*cases)
else:
    main()
