"""Drives the page of `stemma ui` in a real browser, and compares it with the command line.

    python3 page.py CASE TOOL NODE ADDRESS [ARGUMENT]

CASE is one of the functions below. ADDRESS is what the server printed, perhaps with `#token=…`.
The environment variable STEMMA_BROWSER names a Chromium. Exit status 1: the case failed.
"""
import json, os, subprocess, sys, time
from urllib.parse import quote, unquote
from playwright.sync_api import sync_playwright

CASE, TOOL, NODE, ADDRESS = sys.argv[1:5]
URL, _, SECRET = ADDRESS.partition("/#token=")
SECRET, _, AUTHOR = SECRET.partition("&author=")
# Far longer than any view takes, also on a busy machine.
PATIENCE = 60_000


def stemma(*words, node=None):
    result = subprocess.run([TOOL, "-C", node or NODE, *words], capture_output=True, text=True)
    if result.returncode not in (0, 1):
        raise AssertionError(f"stemma {' '.join(words)}: {result.stderr}")
    return result.stdout


def cli(*words):
    return json.loads(stemma(*words, "--json"))


def form(key):
    """A key as in addresses."""
    return "&".join(f"{quote(name, safe='')}={quote(str(part), safe='')}" for name, part in key.items())


def words(key):
    return [f"{name}={part}" for name, part in key.items()]


def equal(what, shown, expected):
    if shown != expected:
        raise AssertionError(f"{what}: shown {json.dumps(shown)[:600]}\nexpected {json.dumps(expected)[:600]}")


class Page:
    """A page in which each failure of a script, and each dialog, fails the case."""

    def __init__(self, browser, theme="light", width=1280):
        self.context = browser.new_context(
            viewport={"width": width, "height": 720}, color_scheme=theme, reduced_motion="reduce")
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors, self.answers = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.errors.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("console", self.note)
        self.token = SECRET

    def note(self, message):
        if message.type == "error" and "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def open(self, route):
        """Opens a view and waits for its first data."""
        self.page.goto("about:blank")
        separator = "&" if self.token else ""
        self.page.goto(f"{URL}/#{'token=' + self.token if self.token else ''}{separator}{route}")
        self.ready()

    def ready(self):
        self.page.wait_for_selector("main[data-ready=true]")

    @property
    def shown(self):
        """The data of the view, as it was received."""
        return self.page.evaluate("window.stemma.shown")

    def close(self):
        self.context.close()
        if self.errors:
            raise AssertionError("\n".join(self.errors))


def routes():
    """Every view, with something in it if the node has it."""
    conflicts = cli("conflicts")
    event = cli("log", "-n", "1")[0]
    record = f"{quote(event['model'], safe='')}/{form(event['key'])}"
    found = {
        "overview": "/", "events": "/events", "event": f"/events/@{event['position']}",
        "records": f"/records/{quote(event['model'], safe='')}", "record": f"/records/{record}",
        "conflicts": "/conflicts", "compare": "/compare?from=@1", "files": "/files", "file": "/files/1",
        "sql": "/sql?sql=SELECT%201%20AS%20one", "peers": "/peers",
    }
    if conflicts:
        first = conflicts[0]
        found["merge"] = f"/conflicts/{quote(first['model'], safe='')}/{form(first['key'])}"
    return found


def views(browser):
    """Each view shows what its command prints."""
    page = Page(browser)
    model = cli("status")["models"][-1]
    rows = cli("list", model, "--limit", "40")
    end = int(cli("log", "-n", "1")[0]["position"])

    page.open("/")
    shown, status = page.shown, cli("status")
    for name in ("name", "events", "records", "partitions", "conflicts", "logBytes", "scope"):
        equal(f"overview {name}", shown["status"][name], status[name])
    equal("overview counts", shown["counts"], cli("conflicts", "--count"))
    page.page.wait_for_function("() => window.stemma.shown.activity")
    days = [{"date": day["date"], "events": day["events"]} for day in cli("stats")["days"]]
    equal("overview days", page.shown["activity"]["days"], days)

    page.open("/events")
    equal("events", page.shown, cli("log", "-n", str(len(page.shown))))
    page.open(f"/events?model={model}&op=update&grep=a")
    equal("filtered events", page.shown, cli("log", "-n", str(len(page.shown)), "--model", model, "--op", "update", "--grep", "a"))
    page.open(f"/events/@{end // 2}")
    page.page.wait_for_function("() => !Array.isArray(window.stemma.shown)")
    equal("event", page.shown, cli("show", f"@{end // 2}"))
    page.open(f"/records/{model}")
    equal("records", page.shown, cli("list", model, "--limit", str(len(page.shown))))
    for row in rows[::13]:
        page.open(f"/records/{model}/{form(row['key'])}")
        shown = page.shown
        equal("record", shown["record"], cli("get", model, *words(row["key"])))
        equal("history", shown["history"], cli("history", model, *words(row["key"])))
        equal("why", shown["why"], cli("why", model, *words(row["key"])))
    page.open("/conflicts")
    equal("conflicts", page.shown, cli("conflicts")[:len(page.shown)])
    page.open(f"/compare?from=@{end // 2}&to=@{end // 2 + 50}")
    equal("compare", page.shown, cli("diff", f"@{end // 2}", f"@{end // 2 + 50}")[:len(page.shown)])
    page.open("/files")
    equal("files", page.shown, cli("segments"))
    sql = "SELECT count(*) AS n, 'x' AS text FROM " + page.page.evaluate(
        "fetch('/v1/models', {headers: {Authorization: 'Bearer ' + sessionStorage.getItem('stemma.token')}})"
        ".then((answer) => answer.json()).then((models) => models.at(-1).table)")
    page.open(f"/sql?sql={quote(sql)}")
    equal("sql", page.shown, cli("query", sql))
    page.open("/peers")
    equal("peers", page.shown, cli("status")["peers"])
    page.close()


def keyboard(browser):
    """A conflict is resolved with the keyboard alone, and the way back is offered."""
    page = Page(browser)
    before = cli("conflicts")
    page.open("/")
    for key in ("g", "c"):
        page.page.keyboard.press(key)
    page.page.wait_for_selector("main[data-view=conflicts][data-ready=true]")
    page.page.keyboard.press("j")
    page.page.keyboard.press("Enter")
    page.page.wait_for_url("**/conflicts/*/*")
    page.ready()
    conflicts = page.shown
    for _ in conflicts:
        page.page.keyboard.press("2")
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("() => document.querySelector('#notices').textContent.includes('Resolved')")
    first = conflicts[0]
    row = cli("get", first["model"], *words(first["key"]))
    for conflict in conflicts:
        equal(conflict["field"], row["fields"][conflict["field"]], conflict["candidates"][1]["value"])
    equal("conflicts left", len(cli("conflicts")), len(before) - len(conflicts))
    if page.page.locator("#notices").get_by_role("button", name="Undo").count() != 1:
        raise AssertionError("no way back is offered")
    page.close()


def edit(browser):
    """A form sends what a person has changed, as it was typed, and nothing else."""
    page = Page(browser)
    model = cli("status")["models"][-1]
    row = cli("list", model, "--limit", "1")[0]
    page.open(f"/records/{model}/{form(row['key'])}")
    page.page.keyboard.press("e")
    page.page.get_by_label("count", exact=True).fill("9007199254740993")
    page.page.get_by_role("button", name="Save").click()
    page.page.wait_for_function("() => document.querySelector('#notices').textContent.includes('Saved')")
    equal("the event", cli("log", "-n", "1")[0]["fields"], {"count": "9007199254740993"})
    page.ready()
    page.page.keyboard.press("e")
    page.page.get_by_label("count", exact=True).fill("1e400")
    page.page.get_by_role("button", name="Save").click()
    page.page.wait_for_selector("dialog p.bad")
    equal("the fields", cli("get", model, *words(row["key"]))["fields"], {**row["fields"], "count": "9007199254740993"})
    # Another change in between is shown before it is written over.
    page.page.get_by_label("count", exact=True).fill("7")
    stemma("update", model, *words(row["key"]), "text=other")
    page.page.get_by_role("button", name="Save").click()
    page.page.wait_for_selector("dialog li:has-text('other')")
    page.page.get_by_role("button", name="Save").click()
    page.page.wait_for_selector("dialog", state="detached")
    equal("both changes", cli("get", model, *words(row["key"]))["fields"], {**row["fields"], "text": "other", "count": 7})
    page.close()


def slider(browser):
    """The slider shows the record as `get --as-of` does, at ten positions."""
    page = Page(browser)
    record = cli("stats", "--top", "1")["hottestRecords"][0]
    name = [record["model"], *words(record["key"])]
    page.open(f"/records/{record['model']}/{form(record['key'])}")
    steps = cli("history", *name)[::-1]
    for number in sorted({round(place * (len(steps) - 1) / 9) for place in range(10)}):
        position = f"@{steps[number]['position']}"
        page.page.evaluate(
            "(step) => { const range = document.querySelector('main input[type=range]');"
            " range.value = step; range.dispatchEvent(new Event('input', {bubbles: true})); }", number + 1)
        expected = cli("get", *name, "--as-of", position)["fields"]
        page.page.wait_for_function(
            "(fields) => Object.entries(fields).every(([name, value]) => {"
            " const row = document.querySelector(`[data-field='${name}']`);"
            " return row && JSON.stringify(JSON.parse(row.dataset.value)) === JSON.stringify(value); })", arg=expected)
        if f"asOf={quote(position)}" not in page.page.url and number < len(steps) - 1:
            raise AssertionError(f"{page.page.url} does not name {position}")
    page.close()


def live(browser):
    """A new event appears without a reload. Prints how long it took."""
    page = Page(browser)
    page.open("/events")
    event = next(event for event in cli("log", "-n", "1000") if event["op"] == "update")
    field, model = next(iter(event["fields"])), event["model"]
    for number in range(3):
        position = int(cli("log", "-n", "1")[0]["position"]) + 1
        stemma("update", model, *words(event["key"]), f"{field}=live {number}")
        begun = time.monotonic()
        page.page.wait_for_selector(f"[data-row='@{position}']")
        print(f"shown {time.monotonic() - begun:.2f} s after the commit")
    equal("events", page.shown[:3], cli("log", "-n", "3"))
    page.close()


def hostile(browser):
    """Texts from records are shown as they are, and never as a part of the page."""
    page = Page(browser)
    for name, route in routes().items():
        page.open(route)
        if page.page.locator("main script, main img, main iframe, main b").count() > 0:
            raise AssertionError(f"{name}: an element came from a record")
    model = cli("status")["models"][-1]
    page.open(f"/records/{model}")
    for row in cli("list", model):
        for text in (value for value in row["fields"].values() if isinstance(value, str) and value):
            if page.page.locator("main bdi", has_text=text).count() == 0:
                raise AssertionError(f"{text!r} is not shown, or not isolated")
    page.close()


def granted(browser):
    """Nothing of an ungranted partition reaches the browser. ARGUMENT: its name."""
    page = Page(browser)
    hidden = sys.argv[5]
    page.page.on("response", lambda answer: page.answers.append(answer))
    visible = [route for route in routes().values()] + [f"/events?grep={hidden}", f"/compare?from=@1&to=now"]
    for route in visible:
        page.page.goto("about:blank")
        page.page.goto(f"{URL}/#token={SECRET}&{route}")
        page.page.wait_for_selector("main[data-ready=true]")
        page.page.wait_for_selector("body.readonly")
        if page.page.locator(".writing:visible").count() > 0:
            raise AssertionError(f"{route}: a holder of rights to read is offered to write")
        if hidden in page.page.content().replace(f"grep={hidden}", "").replace(f'value="{hidden}"', ""):
            raise AssertionError(f"{route}: {hidden} is shown")
        # Bodies are gone when the next page opens; those of streams never end.
        for answer in page.answers:
            is_body = "json" in answer.headers.get("content-type", "") and hidden not in answer.url
            if is_body and hidden in answer.text():
                raise AssertionError(f"{answer.url} has {hidden}")
        page.answers.clear()
    page.context.close()


def accessible(browser):
    """axe finds no serious violation in any view, light and wide, dark and narrow."""
    from axe_core_python.sync_playwright import Axe
    found = []
    for theme, width in (("light", 1280), ("dark", 400)):
        page = Page(browser, theme, width)
        for name, route in routes().items():
            page.open(route)
            for violation in Axe().run(page.page)["violations"]:
                if violation["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:120] for node in violation["nodes"][:3]]
                    found.append(f"{name} {theme} {width}: {violation['id']} {nodes}")
            if page.page.evaluate("document.scrollingElement.scrollWidth > innerWidth"):
                found.append(f"{name} {theme} {width}: the page scrolls sideways")
        page.close()
    if found:
        raise AssertionError("\n".join(found))


def secret(browser):
    """Without the secret there is only a form; with it, the secret leaves the address."""
    page = Page(browser)
    page.page.goto(f"{URL}/")
    page.page.wait_for_selector("main[data-view=token]")
    page.open("/events")
    if SECRET in page.page.url:
        raise AssertionError(page.page.url)
    # The proposed author replaces one of an earlier run at this port.
    page.page.evaluate("localStorage.setItem('stemma.author', 'nobody')")
    page.page.goto("about:blank")
    page.page.goto(ADDRESS)
    page.ready()
    equal("author", page.page.evaluate("localStorage.getItem('stemma.author')"), unquote(AUTHOR))
    page.open("/events")
    page.page.reload()
    page.ready()
    equal("events after a reload", page.shown, cli("log", "-n", str(len(page.shown))))
    page.close()


def screenshots(browser):
    """Pictures of each view, with few colors so that they are small. ARGUMENT: the folder."""
    from PIL import Image
    for theme in ("light", "dark"):
        page = Page(browser, theme, 1040)
        for name, route in routes().items():
            page.open(route)
            # Charts follow the first data.
            page.page.wait_for_timeout(500)
            path = f"{sys.argv[5]}/{name}-{theme}.png"
            page.page.screenshot(path=path)
            Image.open(path).convert("RGB").quantize(24).save(path, optimize=True)
        page.close()


with sync_playwright() as playwright:
    program = playwright.chromium.launch(
        executable_path=os.environ.get("STEMMA_BROWSER", "/usr/bin/chromium"), args=["--no-sandbox"])
    try:
        globals()[CASE](program)
    except AssertionError as failure:
        sys.exit(f"{CASE}: {failure}")
    finally:
        program.close()
