"""What documents show: commands are run or listed with the reason why not; options, links and Python are right."""

import concurrent.futures
import fnmatch
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
import unittest

from program import PROGRAM, ProgramTest, environment
from records import epoch, write_run

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

PLUGIN = ROOT / "build/python/accordion"  # Benchmarks in Python need it.

TINY = "--samples 64 --test-samples 32 --epochs 1 --batch 16 --quiet"

# Commands that are run with these options added, of which the last one counts. Patterns; the first that fits.
SHORTER = {
    "build/accordion * --help": "",
    "build/accordion train *--profile*": TINY + " --batch 32 --workers 2",  # As the profile has it.
    "build/accordion train *": TINY + " --workers 1",  # Several workers: train_test.py and most others.
    "build/accordion compare --recipe mine.toml": TINY + " --workers 2 --seeds 1",
    "build/accordion compare *": "--dry-run",
    "build/accordion resume *": "",
    "build/accordion report *": "",
    "build/accordion decide *": "",
    "build/accordion traffic *": "",
    "build/accordion advise --profile *": "",
    "build/accordion export *": "",
    "build/accordion models": "",
    "build/accordion data": "",
    "build/accordion bench codecs*": "--model resnet18 --codecs fp16 --repetitions 1 --no-peers",
    "build/accordion bench control": "--model cnn --batch 8 --repetitions 1",
    "bench/overlap.py": "--epochs 2 --samples 256 --probe 64 --seeds 1",
    "bench/hook.py *": "--workers 2 --batch 1 --steps 1 --methods none",
    "bench/guard.py *": "--workers 2 --model cnn --warm-up 4 --turns 1 --steps 2",
    "bench/accuracy.py *": "--workers 2 --samples 128 --test-samples 64 --epochs 1 --every 4 --seeds 1",
    "bench/changes.py *": "--workers 2 --phases 1 --seconds 1",
}

# Commands that are not, and why.
NOT_RUN = {
    "make": "minutes: builds all of this",
    "make demo": "minutes: builds; report_test.py runs its two commands with less data",
    "make test": "runs this test",
    "make python": "minutes: builds; the tests of tests/python run it",
    "make format": "changes files",
    "make docs": "installs Doxygen; test_reference runs it where it is there",
    "make page": "fetches from the network",
    "tests/picture.py *": "report_test.py makes such a picture",
    "make soak": "minutes; resume_test.py stops runs and goes on with them, too",
    "make tsan": "minutes: builds with another compiler",
    "make fuzz*": "minutes: builds with another compiler; parse_test and decode_test run its targets within core_alone",
    "make test-debian13": "minutes: builds in a root of its own",
    "ctest *": "runs this test",
    "build/lib/*": "a test's own program: ctest runs it",
    "build-fuzz/*": "needs a crash to look at",
    "RC_PARAMS=*": "minutes",
    "cd tests/reference *": "ctest runs it as reference_codecs",
    "cmake *": "minutes: ctest runs all of it as install",
    "export *": "sets a variable for what follows",
    "build/accordion watch *": "serves until Ctrl-C: watch_test.py",
    "bench/foretold.py*": "minutes: calibrates, which calibrate_test.py does in short",
    "build/accordion calibrate*": "a minute or more, alone on the machine: calibrate_test.py",
    "build/accordion advise --model *": "calibrates first: advise_test.py",
    "build/accordion train *--data cifar10*": "a data set that is not here",
    "build/accordion data ?*": "fetches from the network",
    "build/accordion bench ddp *": "minutes: netlab_test.py runs a smaller one",
    "build/accordion bench collectives*": "minutes: netlab_test.py runs a smaller one",
    "mpirun *": "launch_test.py",
    "srun *": "needs Slurm",
    "torchrun *": "launch_test.py, tests/python; several machines",
}

# Names that stand for any.
STAND_FOR = {"small/NAME.toml": "small/fashion-powersgd.toml", "compare-NAME": "compare-demo", "VERB": "train", "SETTING": "topk", "MODEL": "cnn",
             "ARM": "fastest", "B": "8", "LR": "0.02", "N": "2", "M": "1"}

# Ours, and what starts ours.
PROGRAMS = ("build/accordion ", "bench/", "tests/", "tools/", "make ", "ctest ", "ninja ", "torchrun ", "mpirun ", "srun ")

# Options of other programs.
FOREIGN = {
    "torchrun": "--nnodes --nproc_per_node --no_python --rdzv_backend --rdzv_conf --rdzv_endpoint --max_restarts",
    "mpirun, srun": "--hostfile --ntasks-per-node",
    "ctest, GoogleTest": "--test-dir --output-on-failure --gtest_filter",
    "cmake": "--build --install --prefix",
    "pip, venv": "--no-build-isolation --system-site-packages",
    "tensorboard": "--logdir",
    "bench/*.py": "--arm --target --turns --events --warm-up",
    "examples/pytorch/fashion_mnist.py": "--accordion",
}

VERBS = ["train", "resume", "export", "compare", "report", "watch", "decide", "traffic", "calibrate", "advise", "models", "data",
         "bench ddp", "bench codecs", "bench control", "bench models", "bench collectives", "bench", ""]


def name_of(document):
    return document.relative_to(ROOT).as_posix()


@functools.cache
def blocks(document):
    """(language, text) of each fenced block; and the document without them."""
    pattern = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.S | re.M)
    text = document.read_text()
    found = [(block[2], re.sub(f"^{block[1]}", "", block[3], flags=re.M)) for block in pattern.finditer(text)]
    return found, pattern.sub("", text)


def in_blocks(document):
    """What stands in sh blocks, without comments."""
    for language, text in blocks(document)[0]:
        if language == "sh":
            for line in re.sub(r"\\\n *", "", text).splitlines():
                if command := re.sub(r"(^| +)# .*", "", line).strip():
                    yield command


def in_text(document):
    """Code in running text that is a whole command. `accordion train`, without more, and `tools/netlab` are names."""
    for span in re.findall(r"`([^`]+)`", blocks(document)[1]):
        command = " ".join(span.split())
        if command.startswith("accordion ") and command.removeprefix("accordion ") not in VERBS:
            command = "build/" + command
        if command.removeprefix("sudo ").startswith(PROGRAMS) and (" " in command or re.fullmatch(r"bench/\w+\.py", command)):
            yield command


def commands(document):
    """As far as this machine alone can run them: what hosts of tools/netlab run, one host can, too, and netlab_test.py is about the rest."""
    for command in [*in_blocks(document), *in_text(document)]:
        yield re.sub(r"^(sudo )?(tools/netlab run .*? -- )?", "", command)


def first_fit(command, table):
    return next((pattern for pattern in table if fnmatch.fnmatchcase(command, pattern)), None)


def options_in(text):
    return re.findall(r"(?<![\w-])--[a-z][\w-]*", text)


class Commands(ProgramTest):
    def prepare(self, folder):
        """A place like the root of the sources, with the runs and files that documents take as given."""
        folder.mkdir()
        for name in ("recipes", "profiles", "bench"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "build").mkdir()
        (folder / "build" / "accordion").symlink_to(PROGRAM)
        for name in ("runs/RUN", "runs/my-run", "RUN"):
            shutil.copytree(self.folder / "run", folder / name)
        for name in ("a", "b", "compare-demo/mild/seed-1", "compare-demo/strong/seed-1"):
            write_run(folder / "runs" / name, [epoch(number) for number in range(3)])
        (folder / "runs/compare-demo/comparison.json").write_text(json.dumps(
            {"recipe": "demo.toml", "seeds": [1], "settings": [{"name": name, "folder": name} for name in ("mild", "strong")]}))
        recipe, = [text for language, text in blocks(ROOT / "docs/getting-started.md")[0] if language == "toml"]
        (folder / "mine.toml").write_text(recipe)
        profile = json.loads((ROOT / "profiles/p3.8xlarge-v100.json").read_text().replace('"resnet50"', '"resnet18"'))
        (folder / "mine.json").write_text(json.dumps(profile))
        link = {"latency_us": 1, "bandwidth_gbps": 1}
        codec = {"codec": "dgc:keep=0.01", "encode_ms": 1, "decode_ms": 1, "rounds": [{"collective": "gather", "bytes": 20000}]}
        (folder / "profile.json").write_text(json.dumps({
            "format": "accordion-profile", "version": 1, "network": {"ranks": 2, "bandwidth_gbps": 1, "sum": link, "gather": link, "scatter": link},
            "models": [{"model": "cnn", "batch": 32, "parameters": 220234, "backward_ms": 10, "codecs": [codec]}]}))
        return folder

    def run_all(self, document):
        """What went wrong, command by command: in order, since one may need what another left behind."""
        folder = self.prepare(self.folder / name_of(document).replace("/", "-"))
        for command in commands(document):
            pattern = first_fit(command, SHORTER)
            if first_fit(command, NOT_RUN) or pattern is None or (command.startswith("bench/") and not PLUGIN.exists()):
                continue
            run = functools.reduce(lambda text, name: re.sub(rf"(?<![\w-]){name}(?![\w-])", STAND_FOR[name], text), STAND_FOR, command)
            done = subprocess.run([*shlex.split(run), *shlex.split(SHORTER[pattern])], cwd=folder, capture_output=True, text=True,
                                  timeout=100, env=environment(OMP_NUM_THREADS=1))
            if done.returncode:
                yield f"{name_of(document)}: {command}\n{done.stderr or done.stdout}"

    def test_every_command_is_run_or_listed(self):
        shown = {command for document in DOCUMENTS for command in commands(document)}
        unknown = [command for command in shown if not first_fit(command, SHORTER) and not first_fit(command, NOT_RUN)]
        self.assertEqual(unknown, [], "in documents, but neither run here nor listed with a reason")
        for table in (SHORTER, NOT_RUN):
            self.assertEqual(set(table) - {first_fit(command, table) for command in shown}, set(), "listed here, but in no document")
        for name in STAND_FOR:
            self.assertTrue(any(name in command for command in shown), f"{name} is in no command")

    def test_commands_that_can_be_run(self):
        self.run_program("train", *TINY.split(), "--workers", 2, "--codec", "topk:keep=0.01", "--out", "run")
        longest_first = sorted(DOCUMENTS, key=lambda document: -sum(first_fit(each, SHORTER) is not None for each in commands(document)))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            failed = [message for messages in pool.map(lambda document: list(self.run_all(document)), longest_first) for message in messages]
        self.assertEqual(failed, [], "\n".join(failed))

    def test_commands_stand_in_blocks_that_say_so(self):
        for document in DOCUMENTS:
            for language, text in blocks(document)[0]:
                if language != "sh":
                    self.assertNotRegex(text, r"(?m)^ *(sudo |\$ )?(build/accordion|make|ctest|tools/netlab|torchrun|mpirun) ", name_of(document))

    def test_recipes(self):
        for document in DOCUMENTS:
            for number, (language, text) in enumerate(blocks(document)[0]):
                if language == "toml":
                    recipe = self.folder / f"{document.stem}-{number}.toml"
                    recipe.write_text(text)
                    with self.subTest(name_of(document)):
                        self.run_program("compare", "--recipe", recipe, "--dry-run")


class Options(ProgramTest):
    def test_every_option_exists(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            helps = pool.map(lambda verb: self.run_program(*verb.split(), "--help")[0], VERBS)
        known = {verb: {option for line in text.splitlines() if line.startswith("  -") for option in options_in(line.split("  ")[1])}
                 for verb, text in zip(VERBS, helps)}
        self.assertIn("--no-overlap", known["train"])
        netlab = subprocess.run([ROOT / "tools/netlab", "run", "--help"], capture_output=True, text=True, check=True).stdout
        others = {option: owner for owner, text in FOREIGN.items() for option in text.split()}
        anywhere = set().union(*known.values(), options_in(netlab), others)
        used = set()
        for document in DOCUMENTS:
            found, prose = blocks(document)
            texts = [*in_blocks(document), *re.findall(r"`([^`]+)`", prose.replace("\n", " "))]
            for text in texts:
                # Of what follows the verb, all is the verb's; of anything else, somebody's.
                verb = re.search(r"\baccordion (bench [a-z]+|[a-z]+)(?= |$)(.*)", text)
                if verb and verb[1] in known:
                    for option in options_in(verb[2]):
                        self.assertIn(option, known[verb[1]], f"{name_of(document)}: {text}")
                    text = text[:verb.start()]
                for option in options_in(text):
                    self.assertIn(option, anywhere, f"{name_of(document)}: {text}")
                    used.add(option)
        self.assertEqual(set(others) - used, set(), "options of other programs that no document shows")

    def test_python_compiles(self):
        for document in DOCUMENTS:
            for language, text in blocks(document)[0]:
                if language == "python":
                    compile(text, name_of(document), "exec")


class Codecs(ProgramTest):
    """The table of codecs: all of them, and what each sends."""

    ROW = re.compile(r"^\| `([a-z0-9-]+)`(?: \(([^)]*)\))? \|.*?\|.*?\| (\d+) \|", re.M)

    def test_every_codec_with_its_options_and_bytes(self):
        rows = {row[1]: (row[2], int(row[3])) for row in self.ROW.finditer((ROOT / "docs/codecs.md").read_text())}
        _, refused = self.run_program("traffic", "--codec", "nothing", status=2)
        self.assertEqual(list(rows), refused.strip().partition("There are: ")[2].split(", "))
        # All as levels of one run, but for DGC, which has a run of its own: momentum is its own at every level or at none.
        for names in (["dgc"], [name for name in rows if name != "dgc"]):
            out, _ = self.run_program("traffic", "--workers", 4, "--tensors", "--json", "--controller", "schedule", "--levels",
                                      ";".join([*names, names[0]]), "--plan", "0")
            levels, = [tensor["levels"] for tensor in json.loads(out)["tensors"] if tensor["name"] == "hidden.weight"]
            for name, level in zip(names, levels):
                options, sent = rows[name]
                self.assertEqual(level["payload_bytes"], sent, name)
                spelt = dict(option.split("=") for option in level["codec"].partition(":")[2].split(",") if option)
                spelt.pop("published", None)  # Set by --parity.
                shown = dict(option.split("=") for option in re.findall(r"`([^`]*)`", options or ""))
                self.assertEqual({key: value.removesuffix(".0") for key, value in spelt.items()}, shown, name)


class Results(unittest.TestCase):
    """The tables of adaptive.md: what the JSON beside it comes to."""

    STUDENT = {3: 4.30265, 5: 2.77645}

    def expected(self, rows):
        """Setting by setting: value and difference, sent, extra."""
        first, least = rows[0], min(row["wire_bytes"] for row in rows)
        scale = 100 if first["metric"] == "test_accuracy" else 1
        for row in rows:
            pairs = [scale * (b - a) for a, b in zip(first["values"], row["values"])]
            width = self.STUDENT[len(pairs)] * statistics.stdev(pairs) / len(pairs) ** 0.5
            difference = [f"{statistics.mean(pairs):+.2f} ± {width:.2f}"] if row is not first else []
            yield {f"{scale * row['mean']:.2f}", *difference}, row["wire_bytes"], (row["wire_bytes"] - least) / (first["wire_bytes"] - least)

    def test_tables(self):
        text = (ROOT / "docs/results/adaptive.md").read_text()
        for name in ("demo", "cifar10-powersgd", "cifar10-topk", "fashion-powersgd", "fashion-topk", "wikitext2-lstm-topk", "fashion-batch", "fashion-vgg"):
            section, = [each for each in text.split("\n## ")[1:] if re.match(rf"[^\n]*\n\n`(recipes/)?{name}[.`]", each)]
            table = [[cell.replace("*", "").strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
            columns, rows = table[0], table[1:]
            recorded = json.loads((ROOT / f"docs/results/adaptive/{name}.json").read_text())
            self.assertEqual(len(rows), len(recorded), name)
            for row, (texts, sent, extra) in zip(rows, self.expected(recorded)):
                with self.subTest(f"{name}: {row[0]}"):
                    self.assertLessEqual(texts, set(row))
                    number, unit = row[columns.index("sent")].split()
                    self.assertEqual(number, f"{sent / {'MB': 1e6, 'GB': 1e9}[unit]:.{len(number.partition('.')[2])}f}")
                    if "extra" in columns:
                        self.assertAlmostEqual(float(row[columns.index("extra")]), extra, delta=0.0051)

    def test_the_summary_repeats_the_sections(self):
        text = (ROOT / "docs/results/adaptive.md").read_text()
        head, _, rest = text.partition("\n## ")
        numbers = re.findall(r"\d+\.\d+ ± \d+\.\d+", head)
        self.assertGreater(len(numbers), 10)
        self.assertEqual([number for number in numbers if number not in rest], [], "at the top, and in no section")


class Links(unittest.TestCase):
    def anchors(self, document):
        titles = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", document.read_text(), flags=re.S | re.M), re.M)
        return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}

    def test_relative_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)\s]+)\)", blocks(document)[1]):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                linked = (document.parent / path).resolve() if path else document
                self.assertTrue(linked.exists(), f"{name_of(document)}: {target}")
                if anchor:
                    self.assertIn(anchor, self.anchors(linked), f"{name_of(document)}: {target}")

    def test_the_index_has_every_document(self):
        index = (ROOT / "docs/README.md").read_text()
        for document in (ROOT / "docs").rglob("*.md"):
            if document.name != "README.md":
                self.assertIn(f"({document.relative_to(ROOT / 'docs').as_posix()})", index)

    @unittest.skipUnless(shutil.which("doxygen"), "no doxygen here")
    def test_reference(self):
        version = subprocess.run(["doxygen", "--version"], capture_output=True, text=True, check=True).stdout
        if not version.startswith("1.9.4"):
            self.skipTest(f"Doxygen {version.strip()} may warn of other things than that of Debian 12")
        work = pathlib.Path(tempfile.mkdtemp(prefix="accordion-test-"))
        self.addCleanup(shutil.rmtree, work)
        for path in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs"):
            (work / path).symlink_to(ROOT / path)
        subprocess.run([ROOT / "tools/reference", ROOT / "accordion", work / "build/docs/accordion"], check=True)
        done = subprocess.run(["doxygen", "docs/Doxyfile"], cwd=work, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((work / "build/docs/html/classaccordion_1_1DistributedDataParallel.html").exists())


if __name__ == "__main__":
    unittest.main()
