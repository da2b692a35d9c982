package ticket

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a queue. The zero value works and is the safest.
type Config struct {
	// Namespace keeps queues apart that serve the same entities: two namespaces
	// never wait for each other. It must not contain "/".
	Namespace string
	// Lease is how long an entry stays valid without a renewal. Holders and
	// waiters renew by themselves after a third of it. Default 30 s, at least
	// 1 s, at most 24 h.
	Lease time.Duration
	// Owner names whoever stands in the queue to others, with the time at which it
	// came: in [Entry], and in LockedError of those who wait. Every request on the
	// queue bills it for each entry: its length and 26 bytes. Default: none, at most
	// 256 bytes.
	Owner string
	// ClockSkew is how much clocks may differ: an entry is passed over only when
	// it is past its end by more. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Clockless passes over only what was watched, unchanged, for its full lease
	// on the own clock. Clocks may then differ by any amount. TTL goes by clocks, so the
	// queues have none: the item of one that was used stays.
	Clockless bool
	// Wait bounds the pauses of whoever is next in line; those behind it look
	// less often. Attempts counts looks at the queue, and answers to others of this
	// process that show it.
	Wait repo.Wait
	// Table has the attempt time-out of requests, logger, meter and tracer. Three
	// attempts must fit into a lease; by default they do. Of its Attributes the
	// queue uses TTL.
	Table repo.TableConfig
}

// withDefaults fills in what is not set and refuses what makes no sense.
func (c Config) withDefaults() (Config, error) {
	if strings.Contains(c.Namespace, "/") {
		return c, fmt.Errorf("%w: Namespace is %q: it must not contain \"/\", which ends it in the key", repo.ErrConfig, c.Namespace)
	}
	if !utf8.ValidString(c.Namespace) {
		return c, fmt.Errorf("%w: Namespace is %q: it is not valid UTF-8, which is all that DynamoDB keeps in strings", repo.ErrConfig, c.Namespace)
	}
	if c.Owner != "" { // without one entries say nothing: it is no default
		if err := settings.Owner(&c.Owner)(); err != nil {
			return c, err
		}
	}
	err := settings.FillAll(settings.Lease(&c.Lease), settings.ClockSkew(&c.ClockSkew), settings.Wait(&c.Wait, settings.LeastWait),
		settings.AttemptTimeout(&c.Table.AttemptTimeout, &c.Lease))
	return c, err
}
