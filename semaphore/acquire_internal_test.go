package semaphore

import (
	"strings"
	"testing"
)

// A command line takes a word that begins with a dash for a flag.
func TestIDsOfPermitsBeginWithALetter(t *testing.T) {
	for range 1000 {
		if id := strings.TrimPrefix(permitID(), permitPrefix); strings.ContainsAny(id[:1], "-_0123456789") {
			t.Fatal(id)
		}
	}
}
