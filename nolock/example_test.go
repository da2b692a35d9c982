package nolock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/repo"
)

// Parcel is the item of the example: where a parcel was seen last.
type Parcel struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Place string `dynamodbav:"place"`
	Seen  int64  `dynamodbav:"seen" repo:"eventtime"`
}

// Events come late, twice, and in any order; the latest one stands.
func Example() {
	ctx := context.Background()
	table, err := repo.NewTable[Parcel](rig.Client(), "parcels"+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	if err != nil {
		panic(err)
	}
	if err := table.EnsureTable(ctx); err != nil {
		panic(err)
	}
	parcels, err := nolock.New(table, nolock.Config{})
	if err != nil {
		panic(err)
	}

	for _, event := range []Parcel{
		{"p1", "depot", 100},
		{"p1", "door", 300},
		{"p1", "door", 300}, // again
		{"p1", "van", 200},  // late
	} {
		err := parcels.Put(ctx, event)
		fmt.Println(event.Place, err == nil, errors.Is(err, repo.ErrStale))
	}
	parcel, err := parcels.Get(ctx, repo.Key{Partition: "p1"})
	fmt.Println("it is at the", parcel.Place, err)

	// The deletion has a time too: nothing older brings the parcel back.
	fmt.Println(parcels.DeleteAt(ctx, repo.Key{Partition: "p1"}, 400))
	fmt.Println(errors.Is(parcels.Put(ctx, Parcel{"p1", "van", 350}), repo.ErrStale))
	// Output:
	// depot true false
	// door true false
	// door true false
	// van false true
	// it is at the door <nil>
	// <nil>
	// true
}
