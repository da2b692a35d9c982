package answers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
)

// A table is made, and its TTL switched on, whichever of the answers is false.
func TestTablesAreMade(t *testing.T) {
	name := rig.New(t).Table // its client is not used: the network is another
	rig.InVirtualTime(t, 1, func(t *testing.T, doer fault.Doer) {
		peer := rig.Client(rig.Over(doer))
		for i, k := range kinds {
			for nth := 1; nth <= 5; nth++ {
				if k.known && nth <= 2 {
					continue // nothing was granted yet: it is not known what answers have here
				}
				net := &network{next: doer, every: true}
				l := rig.Must(mutex.New(net.client(t, ways[1+(i+nth)%2]), name, mutex.Config{Mode: mutex.FailOpen}))(t)
				net.lies(&k, nth, (i+nth)%3 > 0, false)
				ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
				err := l.EnsureTable(ctx)
				if err != nil && ways[1+(i+nth)%2] == "by methods" {
					t.Errorf("%s, answer %d: %v", k.name, nth, err)
				}
				net.heals()
				if err != nil {
					rig.Is(t, l.EnsureTable(ctx))
				}
				cancel()
				got := rig.Must(peer.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name}))(t)
				if status := fmt.Sprint(got.TimeToLiveDescription.TimeToLiveStatus); err == nil && status != "ENABLED" {
					t.Errorf("%s, answer %d: TTL is %s, and EnsureTable said %v", k.name, nth, status, err)
				}
				rig.Must(peer.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}))(t)
			}
		}
	})
}
