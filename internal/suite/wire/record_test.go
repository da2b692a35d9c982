package wire

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// request is what an operation sent.
type request struct {
	op   string
	body []byte
}

// record runs an operation on tables of its own, and returns the requests that
// it sent, without those that chance adds, and how it ended. The answer of the
// one with the number lose is lost; -1 loses none.
func record(t *testing.T, c operation, lose int) (sent []request, err error) {
	t.Helper()
	b := newBench(t)
	do := c.prepare(t, b)
	var mu sync.Mutex
	n := 0
	keeps := c.keeps(t)
	b.Faults(func(op string, _ int, body []byte) fault.Kind {
		mu.Lock()
		defer mu.Unlock()
		r := request{op, body}
		if !keeps(r) {
			return fault.None
		}
		sent = append(sent, r)
		n++
		if n-1 == lose {
			return fault.LoseResponse
		}
		return fault.None
	})
	err = do()
	b.Faults(nil)
	mu.Lock()
	defer mu.Unlock()
	return sent, err
}

// block is the text of an operation.
func block(t *testing.T, c operation) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "=== %s\n", c.name)
	sent, err := record(t, c, -1)
	if err != nil {
		t.Errorf("%s: %v", c.name, err)
		return out.String()
	}
	said := map[string]int{} // requests by their text, in the order of first sending
	plain := texts(t, sent)
	if c.anyOrder {
		plain = sorted(plain)
	}
	if c.looks {
		queries := slices.Compact(sorted(slices.DeleteFunc(slices.Clone(plain), func(text string) bool { return !strings.HasPrefix(text, "Query") })))
		plain = slices.Concat(queries, slices.DeleteFunc(plain, isRead))
	}
	write(&out, plain, said)
	for i := range plain {
		if c.looks || c.anyOrder && i > 0 {
			break // which one is lost is a matter of chance, and they are alike
		}
		sent, err := record(t, c, i)
		fmt.Fprintf(&out, "--- answer %d lost\n", i+1)
		if c.anyOrder {
			fmt.Fprintf(&out, "%d requests\n", len(sent))
		} else {
			write(&out, texts(t, sent), said)
		}
		if err != nil {
			fmt.Fprintf(&out, "error: %s\n", verdict(err))
		}
	}
	return out.String()
}

func isRead(text string) bool {
	return strings.HasPrefix(text, "GetItem") || strings.HasPrefix(text, "Query")
}

// keeps reports whether a request is no read that repeats one, if these are a matter of chance.
func (c operation) keeps(t *testing.T) func(r request) bool {
	read := map[string]bool{}
	return func(r request) bool {
		if !c.again || !isRead(r.op) {
			return true
		}
		text := texts(t, []request{r})[0] // the bytes of one and the same read differ
		twice := read[text]
		read[text] = true
		return !twice
	}
}

func write(out *strings.Builder, requests []string, said map[string]int) {
	for _, text := range requests {
		if n, again := said[text]; again {
			op, _, _ := strings.Cut(text, "\n")
			fmt.Fprintf(out, "%s, as [%d]\n", op, n)
			continue
		}
		said[text] = len(said) + 1
		fmt.Fprintf(out, "[%d] %s", said[text], text)
	}
}

// bench is a table name, and a client whose requests are recorded.
type bench struct{ *rig.Rig }

func newBench(t *testing.T) *bench { return &bench{rig.New(t)} }
