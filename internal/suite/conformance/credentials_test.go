package conformance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// Credentials that do not come are told as such, and not only that the time was over:
// whether it is the caller's or an attempt's. Who cancels is told that alone.
func TestCredentialsThatHang(t *testing.T) {
	f := fixture.New(t)
	rig.InVirtualTime(t, 1, func(t *testing.T, network fault.Doer) {
		over := make(chan struct{}) // the SDK's cache waits by a context without an end
		defer close(over)
		hang := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			select {
			case <-ctx.Done():
			case <-over:
			}
			return aws.Credentials{}, ctx.Err()
		})
		for _, cached := range []bool{false, true} {
			client := rig.Client(rig.Over(network), func(o *dynamodb.Options) {
				if o.Credentials = hang; cached {
					o.Credentials = aws.NewCredentialsCache(hang)
				}
			})
			for _, within := range []time.Duration{0, 3 * time.Second, time.Minute} {
				for _, s := range fixture.Strategies()[:3] {
					ctx, cancel := context.WithCancel(t.Context())
					if within > 0 {
						ctx, cancel = context.WithTimeout(t.Context(), within)
					}
					_, err := s.Open(t, f, client).Update(ctx, fixture.Key, fixture.AddOne)
					cancel()
					rig.Is(t, err, repo.ErrDenied, context.DeadlineExceeded)
					if errors.Is(err, repo.ErrOutcomeUnknown) || err == nil || !strings.Contains(err.Error(), "credentials did not come in time") {
						t.Errorf("%s, within %v: %v", s.Name, within, err)
					}
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := f.Items(t, client).Get(ctx, fixture.Key)
			if !errors.Is(err, context.Canceled) || errors.Is(err, repo.ErrDenied) {
				t.Errorf("cancelled: %v", err)
			}
		}
	})
}
