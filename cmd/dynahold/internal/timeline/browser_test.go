package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// measuring is put into a copy of the page, which has no script itself. It looks at what
// the browser has made of the page, and leaves what it finds as text.
const measuring = `<script>
const box = e => e.getBoundingClientRect();
const light = c => {
	const part = c.match(/[\d.]+/g).map(Number).slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
	return .2126 * part[0] + .7152 * part[1] + .0722 * part[2];
};
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
const style = (e, pseudo) => getComputedStyle(e, pseudo);
const found = { rows: document.querySelectorAll("details").length, bars: document.querySelectorAll("details .hold").length, astray: [], thin: 0, faults: [] };
const visible = e => e.checkVisibility();
for (const bar of document.querySelectorAll("details .hold")) {
	const b = box(bar), t = box(bar.parentElement);
	if (b.left < t.left - 1 || b.right > t.right + 8 || b.top < t.top - 1 || b.bottom > t.bottom + 1) found.astray.push(bar.title);
	if (b.width < 3) found.thin++;
}
found.wide = document.documentElement.scrollWidth > innerWidth;
const gap = document.querySelector(".behind .gap"), track = box(document.querySelector("details .track"));
found.gap = gap ? (box(gap).left - track.left) / track.width : -1;
found.late = [...document.querySelectorAll("details .overdue")].map(e => box(e).width);
const page = style(document.body).backgroundColor;
found.dark = light(page) < .2;
found.text = Math.min(...[".soft", ".name", "h1", "a"].map(s => contrast(style(document.querySelector(s)).color, page)));
const label = [...document.querySelectorAll("details .sure")].find(e => e.textContent);
found.label = label ? contrast(style(label).color, style(label).backgroundColor) : 0;
const rows = [...document.querySelectorAll("summary")];
rows[0].focus();
found.focus = document.activeElement === rows[0];
found.closed = visible(document.querySelector("details table"));
rows[0].click();
found.opened = visible(document.querySelector("details table"));
found.words = document.querySelector("details table").innerText;
document.getElementById("only").click();
found.only = rows.filter(visible).map(e => e.querySelector(".name").textContent);
document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "found", textContent: JSON.stringify(found) }));
</script>`

// dump opens a page in a real browser and returns its elements, as they are after the
// page was loaded.
func dump(t *testing.T, page string, flags ...string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("this test needs a browser: install chromium (Debian: apt-get install chromium)")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom"}, flags...)
	cmd := exec.CommandContext(ctx, browser, append(args, "file://"+file)...) // arguments of this test
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v: %s", err, errs.String())
	}
	return out.String()
}

type found struct {
	Rows, Bars, Thin  int
	Astray, Only      []string
	Wide, Dark, Focus bool
	Closed, Opened    bool
	Gap, Text, Label  float64
	Late              []float64
	Words             string
}

// A real browser shows every hold where it belongs, in light and dark, in wide and narrow
// windows; texts have the contrast that WCAG asks for; and a row opens without a mouse.
func TestInABrowser(t *testing.T) {
	line := night(200)
	var page bytes.Buffer
	if err := line.HTML(&page, "v1"); err != nil {
		t.Fatal(err)
	}
	holds := 0
	for _, l := range line.Locks {
		holds += len(l.Holds)
	}
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>`
	if !strings.Contains(page.String(), policy) {
		t.Fatal("the page allows itself more than it needs")
	}
	measured := strings.Replace(strings.Replace(page.String(), policy, "", 1), "</body>", measuring+"</body>", 1)
	for name, flags := range map[string][]string{
		"light":  {"--window-size=1400,900", "--blink-settings=preferredColorScheme=1"},
		"dark":   {"--window-size=1400,900", "--blink-settings=preferredColorScheme=0"},
		"narrow": {"--window-size=500,800", "--blink-settings=preferredColorScheme=1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, _ := strings.Cut(dump(t, measured, flags...), `<pre id="found">`)
			text, _, _ = strings.Cut(text, "</pre>")
			var f found
			if err := json.Unmarshal([]byte(html.UnescapeString(text)), &f); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if f.Rows != len(line.Locks) || f.Bars != holds || f.Thin > 0 {
				t.Errorf("%d rows of %d, %d bars of %d, %d too thin", f.Rows, len(line.Locks), f.Bars, holds, f.Thin)
			}
			if len(f.Astray) > 0 || f.Wide {
				t.Errorf("wider than the window: %v; bars beside their track: %.3q", f.Wide, f.Astray)
			}
			if f.Gap < .49 || f.Gap > .51 {
				t.Errorf("the gap, in the middle of the night, begins at %.3f of the width", f.Gap)
			}
			if len(f.Late) != 1 || f.Late[0] < 20 {
				t.Errorf("overdue: %v", f.Late)
			}
			if f.Dark != (name == "dark") || f.Text < 4.5 || name != "narrow" && f.Label < 4.5 {
				t.Errorf("dark: %v; contrast of texts %.1f, of labels %.1f", f.Dark, f.Text, f.Label)
			}
			if !f.Focus || f.Closed || !f.Opened || !strings.Contains(f.Words, "till-") {
				t.Errorf("a row: focus %v, shows its holds closed %v, opened %v: %q", f.Focus, f.Closed, f.Opened, f.Words)
			}
			if strings.Join(f.Only, " ") != "order-0003 order-0005" {
				t.Errorf("locks with a lost hold: %q", f.Only)
			}
		})
	}
}

// What somebody has written into a table is text to the browser, whatever it looks like.
func TestForeignTextsInABrowser(t *testing.T) {
	evil := `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`
	w := watching(evil, 2*time.Second)
	w.look(0, held(evil, evil, 1))
	w.look(2, lost(held(evil, evil, 2), 1))
	var page bytes.Buffer
	if err := Build(w.stop()).HTML(&page, "v1"); err != nil {
		t.Fatal(err)
	}
	got := dump(t, page.String())
	if strings.Contains(got, "<img") || strings.Contains(got, "<script") || strings.Contains(got, "<title>taken") || !strings.Contains(got, "&lt;img src=x") {
		t.Errorf("%s", got)
	}
}
