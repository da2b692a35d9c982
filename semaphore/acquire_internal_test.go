package semaphore

import (
	"strings"
	"testing"
)

// A command line takes a word that begins with a dash for a flag.
func TestIDsOfPermitsBeginWithALetter(t *testing.T) {
	for range 1000 {
		if id := strings.TrimPrefix(permitID(), permitPrefix); !('A' <= id[0] && id[0] <= 'Z' || 'a' <= id[0] && id[0] <= 'z') {
			t.Fatal(id)
		}
	}
}
