"""What the functions of CEL take and give: those of the language, and those that Kubernetes adds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Type = Any
"""A text such as `int`, a tuple such as ("list", T), or an object's own; a single letter stands for any type."""

DYN = "dyn"
_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", *_NUMBERS, "string", "bytes", "timestamp", "duration", "kubernetes.Quantity")

_TEXT = """
string.contains(string)=bool  string.startsWith(string)=bool  string.endsWith(string)=bool
string.matches(string)=bool  matches(string,string)=bool
size(string)=int  size(bytes)=int  size(list(T))=int  size(map(K,V))=int
string.size()=int  bytes.size()=int  list(T).size()=int  map(K,V).size()=int
int(int)=int  int(uint)=int  int(double)=int  int(string)=int  int(timestamp)=int  int(duration)=int
uint(uint)=uint  uint(int)=uint  uint(double)=uint  uint(string)=uint
double(double)=double  double(int)=double  double(uint)=double  double(string)=double
string(string)=string  string(bool)=string  string(int)=string  string(uint)=string  string(double)=string
string(bytes)=string  string(timestamp)=string  string(duration)=string
string(net.IP)=string  string(net.CIDR)=string
bytes(bytes)=bytes  bytes(string)=bytes  bool(bool)=bool  bool(string)=bool  dyn(T)=dyn  type(T)=type
timestamp(timestamp)=timestamp  timestamp(string)=timestamp  timestamp(int)=timestamp
duration(duration)=duration  duration(string)=duration  duration(int)=duration
duration.getHours()=int  duration.getMinutes()=int  duration.getSeconds()=int  duration.getMilliseconds()=int
string.charAt(int)=string  string.indexOf(string)=int  string.indexOf(string,int)=int
string.lastIndexOf(string)=int  string.lastIndexOf(string,int)=int
list(string).join()=string  list(string).join(string)=string  string.lowerAscii()=string  string.upperAscii()=string
string.replace(string,string)=string  string.replace(string,string,int)=string
string.split(string)=list(string)  string.split(string,int)=list(string)
string.substring(int)=string  string.substring(int,int)=string  string.trim()=string
string.find(string)=string  string.findAll(string)=list(string)  string.findAll(string,int)=list(string)
list(T).indexOf(T)=int  list(T).lastIndexOf(T)=int
isURL(string)=bool  url(string)=kubernetes.URL
kubernetes.URL.getScheme()=string  kubernetes.URL.getHost()=string  kubernetes.URL.getHostname()=string
kubernetes.URL.getPort()=string  kubernetes.URL.getEscapedPath()=string
kubernetes.URL.getQuery()=map(string,list(string))
quantity(string)=kubernetes.Quantity  isQuantity(string)=bool
kubernetes.Quantity.isLessThan(kubernetes.Quantity)=bool
kubernetes.Quantity.isGreaterThan(kubernetes.Quantity)=bool
kubernetes.Quantity.compareTo(kubernetes.Quantity)=int  kubernetes.Quantity.sign()=int
kubernetes.Quantity.isInteger()=bool  kubernetes.Quantity.asInteger()=int
kubernetes.Quantity.asApproximateFloat()=double
optional_type(T).hasValue()=bool  optional_type(T).value()=T  optional_type(T).orValue(T)=T
ip(string)=net.IP  isIP(string)=bool  net.IP.family()=int
cidr(string)=net.CIDR  isCIDR(string)=bool
net.CIDR.containsIP(string)=bool  net.CIDR.containsIP(net.IP)=bool
!_(bool)=bool  -_(int)=int  -_(double)=double  _%_(int,int)=int  _%_(uint,uint)=uint
_+_(string,string)=string  _+_(bytes,bytes)=bytes  _+_(list(T),list(T))=list(T)
_+_(timestamp,duration)=timestamp  _+_(duration,timestamp)=timestamp  _+_(duration,duration)=duration
_-_(timestamp,timestamp)=duration  _-_(timestamp,duration)=timestamp  _-_(duration,duration)=duration
_==_(T,T)=bool  _!=_(T,T)=bool  @in(T,list(T))=bool  @in(K,map(K,V))=bool  _?_:_(bool,T,T)=T
_[_](list(T),int)=T  _[_](map(K,V),K)=V
"""


@dataclass(frozen=True)
class Signature:
    """One way to call a function. of: type of what stands before the dot."""

    args: tuple[Type, ...]
    gives: Type
    of: Type | None = None


def _type(text: str) -> Type:
    head, opened, rest = text.partition("(")
    return (head, *(_type(part) for part in _split(rest[:-1]))) if opened else head


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand in no parentheses."""
    start = depth = 0
    for at, char in enumerate(f"{text},"):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            if part := text[start:at].strip():
                yield part
            start = at + 1


_LINE = re.compile(
    r"(?:(?P<of>[\w.]+(?:\([\w(),.]*?\))?)\.)?(?P<name>[@\w!%+\-=?:\[\]]+)\((?P<args>.*)\)=(?P<gives>.+)"
)


def _read() -> Iterator[tuple[str, Signature]]:
    for text in _TEXT.split():
        match = _LINE.fullmatch(text)
        if match is None:
            raise ValueError(text)
        args = tuple(_type(part) for part in _split(match["args"]))
        of = _type(match["of"]) if match["of"] else None
        yield match["name"], Signature(args, _type(match["gives"]), of)


def _regular() -> Iterator[tuple[str, Signature]]:
    for operator in ("<", "<=", ">", ">="):
        for one in _ORDERED[:-1]:
            yield f"_{operator}_", Signature((one, one), "bool")
        yield from ((f"_{operator}_", Signature((a, b), "bool")) for a in _NUMBERS for b in _NUMBERS if a != b)
    for operator in ("+", "-", "*", "/"):
        yield from ((f"_{operator}_", Signature((one, one), one)) for one in _NUMBERS)
    for part in ("FullYear", "Month", "Date", "DayOfMonth", "DayOfYear", "DayOfWeek"):
        yield from _of_time(f"get{part}")
    for part in ("Hours", "Minutes", "Seconds", "Milliseconds"):
        yield from _of_time(f"get{part}")
    for one in _ORDERED[:-1]:
        many: Type = ("list", one)
        yield "isSorted", Signature((), "bool", many)
        yield from ((name, Signature((), one, many)) for name in ("min", "max"))
    for one in (*_NUMBERS, "duration"):
        yield "sum", Signature((), one, ("list", one))


def _of_time(name: str) -> Iterator[tuple[str, Signature]]:
    yield name, Signature((), "int", "timestamp")
    yield name, Signature(("string",), "int", "timestamp")


def _table() -> dict[str, tuple[Signature, ...]]:
    found: dict[str, list[Signature]] = {}
    for name, signature in (*_read(), *_regular()):
        found.setdefault(name, []).append(signature)
    return {name: tuple(several) for name, several in found.items()}


SIGNATURES = _table()
"""By name. A known function that is not here is not checked, and gives anything."""
