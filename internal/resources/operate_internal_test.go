package resources

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// What an operator asks for through a client goes by its clock: another client of the same
// process, whose clock is ahead, does not move it.
func TestAskedGoesByTheOwnClock(t *testing.T) {
	open := func(ahead time.Duration) *Table {
		clock := func() time.Time { return time.Now().Add(ahead) }
		return rig.Must(New(dynamodb.New(dynamodb.Options{}), "test", Config{Lease: time.Second, Table: repo.TableConfig{Clock: clock}}))(t)
	}
	first, ahead := open(0), open(30*time.Second)
	ahead.askedAt(0)
	was := first.askedAt(0)
	if over := time.Until(time.Unix(0, was)); over > time.Second {
		t.Errorf("asked for %v ahead of the own clock", over)
	}
	if next := first.askedAt(0); next <= was {
		t.Errorf("%d after %d", next, was)
	}
}
