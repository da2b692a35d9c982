package semaphore

import (
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/resources"
)

// A command line takes a word that begins with a dash for a flag.
func TestIDsOfPermitsBeginWithALetter(t *testing.T) {
	for range 1000 {
		if id := strings.TrimPrefix(permitID(), resources.PermitPrefix); strings.ContainsAny(id[:1], "-_0123456789") {
			t.Fatal(id)
		}
	}
}
