package main

import (
	"testing"

	"github.com/dynahold/dynahold/localdb"
)

func TestDeposit(t *testing.T) {
	client := localdb.Client(t)
	for want := 30; want <= 90; want += 30 {
		a, err := deposit(t.Context(), client, "a1", 30)
		if err != nil || a.Balance != want {
			t.Fatalf("%+v, %v", a, err)
		}
	}
}
