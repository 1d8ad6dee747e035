"""Random texts that are hard to search: every script, and everything that has broken a search before."""

import base64
from random import Random

_WORDS = """
the parser Parser PARSER span off by one range error Fehler naïve x a I it's foo_bar snake_case HTTPServer
Straße STRASSE STRAẞE Köln KÖLN übergrößenträger İstanbul ıstanbul istanbul ſtop STOP \u212aelvin kelvin
Οδυσσέας ΟΔΥΣΣΈΑΣ ΣΊΣΥΦΟΣ σίσυφος µm μm ﬀ ŉ ǅ ǆ ǰ \u0390 \u1fd3 ᾳ ᾼ ᾈ ᾀ \u2126 ω å Å \u212b
e\u0301te\u0301 été E\u0301TE\u0301 a\u0345 Α\u0345 q\u0323\u0307 \u0301lone
中文搜索 错误处理 解析器的错误 日本語のテキスト ｱｲｳ カタカナー 한국어도 됩니다 \u1112\u1161\u11ab 𠮷野家 々〆
ภาษาไทย กำลังทดสอบ ພາສາລາວ ភាសាខ្មែរ မြန်မာ བོད་ཡིག हिन्दी में खोज தமிழ் العربية مُحَمَّد עברית שָׁלוֹם
Привет ПРИВЕТ ёж Ԛ ԛ ქართული Ქართული Ꭰꭰ 𐐀𐐨 𞤀𞤢 Ⅷ ⅷ Ⓐ ⓐ Ａｂｃ ａＢＣ 𝔸 ² ½ ① ٣٤ १२
🎉 👩\u200d💻 👍🏽 🇩🇪 ✅ ☃\ufe0f ❤ © ™ → ⇒ ∀ € ° … — “q” «q» ¿ 、 。 ： ？
-> => :: != === && || { } ( ) [ ] < > / \\ | ~ ` @ # $ % ^ & * + = ; , . ? ! ' " _ -
foo.bar( foo.bar(baz) src/parser.rs:88 C:\\temp a,b,c #tag TODO: x=1 0x1F 3.14 1,000 v1.2.3-rc.1 --full
9f86d081884c7d659a2feaa0c55ad015a3bf4f1b 0198f3c2-11aa-7bbb-8ccc-0123456789ab
"""
WORDS = _WORDS.split()

_ODD = (
    "\t\x00\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad\u200b\u200d\u200e\u2028\u2029\u2060\u3000\ufeff\ufffd\uffff"
    "\ue000\U0010ffff\ud83d\udc00"
)
ODD = list(_ODD)

SEPARATORS = [" ", " ", " ", " ", "", "", "  ", "\n", "\n", "\r\n", "\r", "\n\n", "_", "-", ".", "/"]


def random_character(random: Random) -> str:
    """Any code point: assigned or not, a surrogate or not."""
    plane = random.choice([0x80, 0x250, 0x3000, 0xFFFF, 0x10FFFF])
    return chr(random.randint(0, plane))


def random_run(random: Random, length: int) -> str:
    """A word without an end: encoded bytes, hexadecimal digits, one letter, or one script."""
    style = random.randrange(5)
    if style == 0:
        return base64.b64encode(random.randbytes(length)).decode()[:length]
    if style == 1:
        return random.randbytes(length).hex()[:length]
    if style == 2:
        return random.choice("aAß中ก1\u0301") * length
    if style == 3:
        return "".join(random.choices("错误处理解析器文中", k=length))
    return "".join(random.choices("abcDEFéßſKσςΣ0123٣\u0301ก", k=length))


def random_text(random: Random, *, words: int) -> str:
    """About so many words with what may stand between them; often of several lines."""
    pieces = []
    for _ in range(random.randint(0, words)):
        roll = random.random()
        if roll < 0.88:
            pieces.append(random.choice(WORDS))
        elif roll < 0.94:
            pieces.append(random.choice(ODD))
        elif roll < 0.98:
            pieces.append(random_character(random))
        else:
            pieces.append(random_run(random, random.choice([30, 33, 63, 64, 65, 66, 97, 130, 400])))
        pieces.append(random.choice(SEPARATORS))
    return "".join(pieces)


def random_case(random: Random, text: str) -> str:
    """The text with the case of some characters changed."""
    change = random.choice([str.upper, str.lower, str.swapcase, str.title])
    return "".join(change(char) if random.random() < 0.7 else char for char in text)
