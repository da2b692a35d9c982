package ticket_test

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

func Example() {
	ctx := context.Background()
	q, err := ticket.New(rig.Client(), "queues", ticket.Config{Namespace: "printer"})
	if err != nil {
		panic(err)
	}
	defer q.Close(ctx)
	if err := q.EnsureTable(ctx); err != nil {
		panic(err)
	}

	first, _ := q.Lock(ctx, "room 7")
	second, _ := q.Join(ctx, "room 7") // stands in line, and does other things
	ahead, _ := second.Position(ctx)
	fmt.Println("ahead:", ahead)

	_ = first.Done(ctx)
	turn, err := second.Wait(ctx)
	fmt.Println("next:", turn.Number() == first.Number()+1, err)
	fmt.Println("done:", turn.Done(ctx))

	err = q.Do(ctx, "room 7", func(ctx context.Context, turn *ticket.Turn) error {
		fmt.Println("alone in", turn.Entity())
		return nil
	})
	fmt.Println(err)
	// Output:
	// ahead: 1
	// next: true <nil>
	// done: <nil>
	// alone in room 7
	// <nil>
}
