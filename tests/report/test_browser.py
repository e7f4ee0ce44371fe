"""Reports as people meet them: opened in a browser, looked over, sorted, hovered, printed in the dark."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright", reason="needs the extra dev")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from disco_eval import Models, Responses, condense
from disco_eval.cli import demo as demo_command
from disco_eval.comparison import compare
from disco_eval.files import new_folder
from disco_eval.harness.watch import TABLE, Point, write_points
from disco_eval.integrity import CONDENSED, ZOO
from disco_eval.report import record
from disco_eval.report.pages import report
from disco_eval.studies.demo import run_demo
from disco_eval.studies.run import study
from tests.conftest import population

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "n" * 120, "=1+1\"'&amp;`${x}{{y}}"]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
KINDS = ("demo", "study", "watch", "condensation", "estimates", "comparison")
LOOKS = [(1280, "light"), (1280, "dark"), (375, "light"), (375, "dark")]


def hostile(n_models=48, n_items=80):
    """Answers of models some of which have names that would break a careless page."""
    r = population(n_models, n_items)
    names = [*HOSTILE, *r.models.ids.tolist()[len(HOSTILE) :]]
    return Responses(Models(names, family=r.models.family), r.items, r.correct, r.probs)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """One report of each kind."""
    here = tmp_path_factory.mktemp("reports")
    made = {"demo": here / "demo"}
    with new_folder(made["demo"], "demo.csv") as draft:
        draft.mkdir()
        found = run_demo(60, 40, 0)
        demo_command._write(found, draft)
        about = {"condensation": CONDENSED, "responses": ZOO}
        record.keep(draft, "demo", "disco demo --models 60 --anchors 40", **about)
    r = hostile()
    named = r.models.ids.tolist()
    c = condense(r.pick(models=np.arange(2, 48)), 20, benchmark=HOSTILE[0], rng=0)
    c.save(here / "condensation")
    made["condensation"] = here / "condensation"
    estimates = c.estimate(r.pick(models=np.arange(8)))
    made["study"] = here / "study"
    study(["random+direct", "pds+forest", "auto+auto"], {HOSTILE[0]: r}, ["iid"], [10, 30], 2, 0, out=made["study"])
    record.keep(made["study"], "study", "disco study", title="study")
    about = record.summary(c)
    points = [Point.of(e.model, 100 * k, e, 1.0) for k, e in enumerate(estimates)]
    made["watch"] = here / "watch"
    write_points(points, made["watch"] / TABLE)
    record.keep(made["watch"], "watch", "disco watch", condensation=about, level=0.9)
    for kind in ("estimates", "comparison"):
        made[kind] = here / kind
    found = record.estimates_record(c, estimates, 0.9)
    record.keep(made["estimates"], "estimates", "disco estimate", condensation=about, **found)
    pair = [r.pick(models=[named.index(name)]) for name in HOSTILE[:2]]
    verdict = vars(compare(c, *pair, margin=0.02))
    record.keep(made["comparison"], "comparison", "disco compare", condensation=about, comparison=verdict)
    return {kind: report(folder) for kind, folder in made.items()}


@pytest.fixture(scope="module")
def browser():
    own = shutil.which("chromium") or shutil.which("google-chrome")  # else playwright's own
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=own, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def look(browser):
    """Open a file; at the end of the test the page must have said nothing and asked for nothing else."""
    opened = []

    def open_page(file, width=1280, scheme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: said.append(request.url) if not request.url.startswith("blob:") else None)
        page.goto(Path(file).as_uri())
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        opened.append((context, Path(file).as_uri(), said))
        return page

    yield open_page
    for context, address, said in opened:
        context.close()
        assert said == [address]


def marks(page):
    """How many visible marks every figure has; of a canvas, how many different colours."""
    return page.evaluate("""() => Object.fromEntries([...document.querySelectorAll("[data-figure]")].map((place) => {
        const canvas = place.querySelector("canvas");
        if (canvas) {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return [place.dataset.figure, new Set(new Uint32Array(data.buffer)).size];
        }
        const shapes = [".mark-symbol path", ".mark-rule line", ".mark-rect path", ".mark-line path"].join();
        const size = (s) => s.getBBox().width + s.getBBox().height;
        const inside = (s) => !s.closest(".role-axis, .role-legend");
        const seen = [...place.querySelectorAll(shapes)].filter((s) => inside(s) && size(s) > 1);
        return [place.dataset.figure, seen.length];
    }))""")


@pytest.mark.parametrize("kind", KINDS)
def test_every_look_is_whole_and_open_to_everyone(reports, look, kind):
    assert reports[kind].stat().st_size < 3e6
    for width, scheme in LOOKS if kind == "demo" else LOOKS[::3]:
        page = look(reports[kind], width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme)
        spread = page.evaluate("""() => [...document.querySelectorAll("main *, header *")]
            .filter((e) => !e.closest(".scroll, nav, pre, svg") && e.getBoundingClientRect().right > innerWidth + 1)
            .map((e) => e.outerHTML.slice(0, 80))""")
        assert spread == [], (width, scheme)
        found = marks(page)
        assert found
        assert all(n > 2 for n in found.values()), found
        assert page.locator(".failed").count() == 0
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        faults = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        named = [(v["id"], v["nodes"][0]["html"][:120]) for v in faults if v["impact"] in ("serious", "critical")]
        assert named == [], (width, scheme)


@pytest.mark.parametrize("kind", ["demo", "study", "watch"])
def test_tables_sort_and_filter(reports, look, kind):
    page = look(reports[kind])
    table = page.locator(".sheet").first
    head = table.locator("th").filter(has_text={"demo": "estimate", "study": "mean error", "watch": "estimate"}[kind])
    column = head.evaluate("e => e.cellIndex")

    def values():
        return [float(t) for t in table.locator(f"tbody td:nth-child({column + 1})").all_inner_texts()]

    for order, sign in (("descending", -1), ("ascending", 1)):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        assert values() == sorted(values(), key=lambda v: sign * v)
    if table.locator("input").count():
        first = table.locator("tbody tr").first.locator("td").first.inner_text()
        table.locator("input").fill(first)
        shown = table.locator("tbody tr:visible")
        assert 1 <= shown.count() < len(values())
        assert "rows" in table.locator(".count").inner_text()


def test_hovering_names_the_model_and_its_error(reports, look):
    page = look(reports["demo"])
    figure = page.locator("[data-figure=truth-scatter]")
    figure.scroll_into_view_if_needed()
    figure.locator(".mark-symbol path").first.hover(force=True)
    page.wait_for_selector(".vg-tooltip.visible")
    text = page.locator(".vg-tooltip").inner_text()
    for word in ("model", "true %", "low %", "error (points)"):
        assert word in text


def test_hostile_names_are_text_in_tips_too(reports, look):
    page = look(reports["watch"])
    page.locator("[data-figure=learning-curve] .mark-symbol path").first.hover(force=True)
    page.wait_for_selector(".vg-tooltip.visible")
    assert HOSTILE[0] in page.locator(".vg-tooltip").inner_text()
    for name in HOSTILE:
        assert name in page.locator(".sheet table").inner_text()
    assert page.locator("img").count() == 0


def test_a_click_changes_light_and_dark(reports, look):
    page = look(reports["watch"])
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == before


def test_what_is_shown_can_be_saved(reports, look, tmp_path):
    page = look(reports["watch"], accept_downloads=True)
    with page.expect_download() as waiting:
        page.locator(".sheet [data-csv]").click()
    waiting.value.save_as(tmp_path / "saved.csv")
    with (tmp_path / "saved.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [row["checkpoint"] for row in rows[: len(HOSTILE)]] == HOSTILE
    content = json.loads(page.locator("#content").inner_text())
    assert [float(row["estimate"]) for row in rows] == [row[2] for row in content["data"]["checkpoints"]["rows"]]


def test_only_the_keyboard(reports, look):
    page = look(reports["demo"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.locator("th button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("th").first.get_attribute("aria-sort") == "ascending"


def test_nothing_is_cut_off_in_print(reports, look):
    page = look(reports["demo"])
    page.emulate_media(media="print")
    hidden = page.evaluate("""() => [...document.querySelectorAll(".scroll")]
        .filter((e) => getComputedStyle(e).overflowY !== "visible").length""")
    assert hidden == 0
    assert page.locator("nav").is_hidden()


def test_a_name_that_is_markup_runs_nothing_even_without_the_policy(reports, look):
    page = look(reports["estimates"], bypass_csp=True)
    for table in page.locator("tbody").all():
        assert HOSTILE[1] in table.inner_text()
    assert page.locator("main script").count() == 0


def test_on_a_narrow_screen_flags_stand_under_names_and_nothing_of_the_command_is_cut(reports, look):
    for width, narrow in ((1280, False), (420, True)):
        page = look(reports["estimates"], width)
        table = page.locator("#table-estimates")
        assert table.locator("th.flags").is_visible() != narrow
        flags = table.locator("td small").all()
        assert flags
        assert all(one.is_visible() == narrow for one in flags)
        assert page.evaluate("[...document.querySelectorAll('pre')].every((e) => e.scrollWidth <= e.clientWidth)")


def test_names_of_usual_length_leave_room_for_errors_on_a_narrow_screen(look, tmp_path):
    condense(population(30, 40), 10, rng=0, curve=False, relatives=False).save(tmp_path / "c")
    page = look(report(tmp_path / "c"), 420)
    table = page.locator("#table-left-out-sources")
    assert table.locator(".scroll").evaluate("e => e.scrollWidth <= e.clientWidth")
    name = table.locator("td.word").first
    assert name.evaluate("e => getComputedStyle(e).whiteSpace") == "nowrap"
