package localdb

import (
	"strings"
	"testing"
)

func TestOutputWaitsForItsOwnEndpoint(t *testing.T) {
	cases := map[string]struct {
		pieces []string
		want   bool
	}{
		"one piece":            {[]string{"Dynoxide listening on http://127.0.0.1:1234\n"}, true},
		"many pieces":          {[]string{"Dyn", "oxide listening on http://127.0.0.1:1", "234", "\n"}, true},
		"after other lines":    {[]string{"hello\r\nDynoxide listening on http://127.0.0.1:1234\r\n"}, true},
		"announced twice":      {[]string{strings.Repeat("listening on http://127.0.0.1:1234\n", 2)}, true},
		"incomplete":           {[]string{"Dynoxide listening on http://127.0.0.1:1234"}, false},
		"another port":         {[]string{"Dynoxide listening on http://127.0.0.1:12345\n"}, false},
		"another address":      {[]string{"Dynoxide listening on http://0.0.0.0:1234\n"}, false},
		"a line without end":   {[]string{strings.Repeat("x", 10*maxLine)}, false},
		"after an endless one": {[]string{strings.Repeat("x", 10*maxLine), "\nlistening on http://127.0.0.1:1234\n"}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := newOutput("http://127.0.0.1:1234", Config{}.logger())
			for _, piece := range c.pieces {
				if n, err := o.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			got := false
			select {
			case <-o.listening:
				got = true
			default:
			}
			if got != c.want {
				t.Errorf("listening: %v, want %v", got, c.want)
			}
			if len(o.partial) >= maxLine || len(o.last) > keptLines {
				t.Errorf("kept %d bytes and %d lines", len(o.partial), len(o.last))
			}
		})
	}
}

func TestOutputKeepsTheLastWords(t *testing.T) {
	o := newOutput("http://127.0.0.1:1", Config{}.logger())
	if got := o.tail(); got != "no output" {
		t.Errorf("tail: %q", got)
	}
	_, _ = o.Write([]byte("one\ntwo\nthr"))
	if got := o.tail(); got != "one | two | thr" {
		t.Errorf("tail: %q", got)
	}
}
