package settings

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dynahold/dynahold/repo"
)

// maxOwner is in bytes: every request on an item bills the name of its holder.
const maxOwner = 256

// Owner names the holder to others. A name that would not come back from the item
// as it was given is refused: a holder that cannot read its own name does not know
// its own locks.
func Owner(name *string) Fill {
	return func() error {
		switch {
		case *name == "":
			host, _ := os.Hostname() // an unnamed host is named by its process alone
			*name = ownName(host, os.Getpid())
		case len(*name) > maxOwner:
			return fmt.Errorf("%w: Owner has %d bytes: use at most %d, it is stored on the item", repo.ErrConfig, len(*name), maxOwner)
		case !utf8.ValidString(*name):
			return fmt.Errorf("%w: Owner %q is not valid UTF-8, which is all that DynamoDB keeps in strings", repo.ErrConfig, *name)
		case strings.ContainsFunc(*name, unicode.IsControl):
			return fmt.Errorf("%w: Owner %q contains control characters: it is shown in errors and logs", repo.ErrConfig, *name)
		}
		return nil
	}
}

// ownName is the owner's name made of what the system says: it is nobody's
// setting, so it is cleaned, not refused.
func ownName(host string, pid int) string {
	host = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, host)
	name := "/" + strconv.Itoa(pid)
	for len(host)+len(name) > maxOwner {
		_, size := utf8.DecodeLastRuneInString(host)
		host = host[:len(host)-size]
	}
	return host + name
}
