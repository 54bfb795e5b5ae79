"""Bytes of a text file as text: which encoding it has, and which character separates its columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from itertools import islice

from kstonet._words import some
from kstonet.tables import InputError

MARKS = (  # the longer first: a mark of UTF-32 begins like one of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WESTERN = "cp1252"  # latin-1 with quotation marks, dashes and the euro where latin-1 has nothing to print
TYPOGRAPHY = frozenset("€‚„…‘’“”•–—™\u00a0§°²³µ·«»©®±´½¼¾¿¡ºª×Œœ")
WORD = re.compile(r"[^\W\d_]+")
SEPARATORS = (";", "\t", "|", ",")  # the comma last: it is in numbers and names, too
LINES_EXAMINED = 200  # lines that decide about the separator


def decoded(content: bytes, name: str, encoding: str | None = None) -> str:
    """The text of a file.

    A mark at its beginning decides; then UTF-8, if the bytes allow it; then UTF-16 without a mark; then Windows-1252, if the
    text reads like a Western European one. What was guessed is said in a warning.

    Parameters
    ----------
    content : bytes
    name : str
        Name of the file, for messages.
    encoding : str, optional
        As the user says.

    Returns
    -------
    str

    Examples
    --------
    >>> decoded("Genève".encode("utf-16"), "a.csv"), decoded(b"", "a.csv")
    ('Genève', '')
    """
    if encoding is not None:
        return _as_said(content, name, encoding)
    for mark, known in MARKS:
        if content.startswith(mark):
            return _as_said(content, name, known)
    if b"\0" in content[:2000]:
        wide = _wide(content)
        if wide is None:
            raise InputError(f"{name} is not a text file (it holds zero bytes); name its --format or --encoding.")
        return wide
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        text = _western(content)
        if text is None:
            raise InputError(
                f"{name} is not UTF-8 text (byte {error.start:,}), nor Western European; name its encoding, such as "
                "--encoding cp1251, or save it as UTF-8."
            ) from error
    words = list(dict.fromkeys(word for word in WORD.findall(text) if not word.isascii()))
    example = f" ({some(words, 3)})" if words else ""
    warnings.warn(
        f"{name} is not UTF-8; it was read as Windows-1252{example}. If letters are wrong, name its --encoding.",
        UserWarning,
        stacklevel=2,
    )
    return text


def _as_said(content: bytes, name: str, encoding: str) -> str:
    try:
        known = codecs.lookup(encoding).name
    except LookupError:
        raise InputError(f"--encoding {encoding!r} is not known; such as utf-8, utf-16, cp1252, latin-1, cp1251.") from None
    try:
        return content.decode("utf-8-sig" if known == "utf-8" else known)
    except UnicodeError as error:
        raise InputError(f"{name} is not text in the encoding {encoding} ({error}); try another --encoding.") from error


def _wide(content: bytes) -> str | None:
    """UTF-16 without a mark: in Western text every other byte is zero."""
    even, odd = content[0:2000:2].count(0), content[1:2000:2].count(0)
    try:
        return content.decode("utf-16-le" if odd > even else "utf-16-be") if max(even, odd) > 10 * min(even, odd) else None
    except UnicodeDecodeError:
        return None


def _western(content: bytes) -> str | None:
    """Windows-1252, if it reads like a Western European text: accents inside words, not words of accents."""
    try:
        text = content.decode(WESTERN)
    except UnicodeDecodeError:
        return None
    beyond = [character for character in text if character > "\x7f"]
    # Other encodings of one byte have letters where Windows-1252 has typographic signs, or the other way round.
    if any(not (character.isalpha() and "\xc0" <= character <= "\xff") and character not in TYPOGRAPHY for character in beyond):
        return None
    words = [word for word in WORD.findall(text) if not word.isascii()]
    accents = sum(character > "\x7f" for word in words for character in word)
    return text if 2 * accents <= sum(map(len, words)) else None


def separator_of(text: str) -> str:
    r"""The character that separates columns: the one that splits all lines into the same number of fields, two or more.

    Where none does, the semicolon or the comma of the first line, so that a message can name the row that differs.

    Examples
    --------
    >>> separator_of("a;b\n1,5;2\n"), separator_of("a,b\n1,2\n"), separator_of("a|b\n1|2\n")
    (';', ',', '|')
    """
    fields = {mark: _widths(text, mark) for mark in SEPARATORS}
    even = {mark: widths[0] for mark, widths in fields.items() if len(set(widths)) == 1 and widths[0] > 1}
    if even:
        return max(even, key=lambda mark: even[mark])
    return max(",;\t|", key=lambda mark: fields[mark][0] if fields[mark] else 1)


def _widths(text: str, separator: str) -> list[int]:
    try:
        rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
        return [len(row) for row in islice((row for row in rows if row), LINES_EXAMINED)]
    except csv.Error:  # a field beyond all bounds: not this separator
        return [1]
