package ticket

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynahold/dynahold/internal/hold"
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
	// ClockSkew is how much clocks may differ: an entry is passed over only when
	// it is past its end by more. Default 1 s; use 1 ns for none.
	ClockSkew time.Duration
	// Clockless passes over only what was watched, unchanged, for its full lease
	// on the own clock. Clocks may then differ by any amount.
	Clockless bool
	// Wait bounds the pauses of whoever is next in line; those behind it look
	// less often. Attempts counts looks at the queue.
	Wait repo.Wait
	// AttemptTimeout bounds one attempt of a request. Default 10 s, or a third of
	// the lease if that is shorter; three must fit into a lease.
	AttemptTimeout time.Duration

	Logger         *slog.Logger         // default: none
	MeterProvider  metric.MeterProvider // default: none
	TracerProvider trace.TracerProvider // default: none
}

// settle checks the settings and fills in defaults.
func (c Config) settle() (Config, error) {
	var err error
	if strings.Contains(c.Namespace, "/") {
		return c, fmt.Errorf("%w: Namespace is %q: it must not contain \"/\", which ends it in the key", repo.ErrConfig, c.Namespace)
	}
	if c.Lease, err = hold.Lease(c.Lease); err != nil {
		return c, err
	}
	if c.ClockSkew, err = repo.ClockSkew(c.ClockSkew); err != nil {
		return c, err
	}
	if c.Wait, err = c.Wait.WithDefaults(); err != nil {
		return c, err
	}
	if c.AttemptTimeout > c.Lease/3 {
		return c, fmt.Errorf("%w: Lease (%v) is shorter than three times AttemptTimeout (%v): one lost answer could end it", repo.ErrConfig, c.Lease, c.AttemptTimeout)
	}
	if c.AttemptTimeout == 0 {
		c.AttemptTimeout = min(10*time.Second, c.Lease/3)
	}
	return c, nil
}

func (c Config) table() repo.TableConfig {
	return repo.TableConfig{AttemptTimeout: c.AttemptTimeout, Logger: c.Logger, MeterProvider: c.MeterProvider, TracerProvider: c.TracerProvider}
}
