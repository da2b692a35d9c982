package compare

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// One verdict for both worlds: what both advise, else what is least behind in its worse one.
func TestVerdictOfBothWorlds(t *testing.T) {
	slow := func(n int) func(*Mode) { return tail(time.Duration(n) * 100 * time.Millisecond) }
	for name, c := range map[string]struct {
		even, uneven Measured
		mode         string
		same         bool
		says         string
	}{
		"same":            {of(mode("optimistic"), mode("pessimistic", slow(2))), of(mode("optimistic"), mode("pessimistic", slow(2))), "optimistic", true, "The advice is the same in both worlds."},
		"within noise":    {of(mode("pessimistic, combine"), mode("pessimistic")), of(mode("pessimistic, combine"), mode("pessimistic", slow(2))), "pessimistic, combine", true, "the same in both"},
		"simplest":        {of(mode("pessimistic, combine", slow(1)), mode("optimistic, warm, combine, fair", tail(99*time.Millisecond))), of(mode("pessimistic, combine", slow(1)), mode("optimistic, warm, combine, fair", tail(99*time.Millisecond))), "pessimistic, combine", true, "the same in both"},
		"least behind":    {of(mode("optimistic"), mode("pessimistic", slow(9)), mode("pessimistic, race", slow(2))), of(mode("optimistic", slow(9)), mode("pessimistic"), mode("pessimistic, race", slow(3))), "pessimistic, race", false, `differs: "optimistic" where latency is even`},
		"out in one":      {of(mode("optimistic"), mode("pessimistic", slow(9))), of(mode("optimistic", loses(1)), mode("pessimistic")), "pessimistic", false, `"pessimistic" is safe in both`},
		"out in the last": {of(mode("optimistic")), of(mode("optimistic", loses(1))), "", false, "No mode is in question in both worlds."},
	} {
		f := findings(hot, c.even, c.uneven)
		if v := f.Verdict; v.Mode != c.mode || v.Same != c.same {
			t.Errorf("%s: %+v", name, v)
		}
		var b, page bytes.Buffer
		if err := f.Table(&b, 100, false); err != nil || f.HTML(&page) != nil {
			t.Fatal(err)
		}
		wellFormed(t, page.String())
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), c.says) || !strings.Contains(page.String(), "Where latency is uneven") {
			t.Errorf("%s:\n%s", name, &b)
		}
	}
}
