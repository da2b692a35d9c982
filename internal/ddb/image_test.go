package ddb_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
)

// onItem is a write whose condition also fails where there is no item.
func (b *bench) onItem(id string) *dynamodb.UpdateItemInput {
	in := b.add(id)
	in.ConditionExpression = aws.String("attribute_exists(id) AND attribute_not_exists(n)")
	return in
}

func isImageless(res ddb.Result) bool {
	var fault *ddb.ImageError
	return res.Outcome == ddb.Refused && errors.As(res.Err, &fault)
}

// An endpoint that shows no item where a condition failed is found out, and none
// that shows them is accused of it.
func TestEndpointsWithoutImages(t *testing.T) {
	b := newBench(t)
	plain, _ := b.sender(t, always(fault.None))
	for _, id := range []string{"there", "other"} {
		if res := plain.Update(t.Context(), b.add(id), ddb.Options{}); res.Outcome != ddb.Applied {
			t.Fatal(res.Err)
		}
	}
	t.Run("a condition that fails on an item only", func(t *testing.T) {
		s, in := b.sender(t, always(fault.NoImage))
		if res := s.Update(t.Context(), b.add("there"), ddb.Options{OnItem: true}); !isImageless(res) || in.Requests() != 1 {
			t.Errorf("outcome %v, %d requests: %v", res.Outcome, in.Requests(), res.Err)
		}
		// From now on it is known.
		if res := s.Update(t.Context(), b.onItem("other"), ddb.Options{Absence: true}); !isImageless(res) || in.Requests() != 2 {
			t.Errorf("outcome %v, %d requests: %v", res.Outcome, in.Requests(), res.Err)
		}
	})
	t.Run("absence that is none", func(t *testing.T) {
		s, in := b.sender(t, always(fault.NoImage))
		res := s.Update(t.Context(), b.onItem("there"), ddb.Options{Absence: true})
		if res.Outcome != ddb.Condition || !ddb.Equal(res.Image["n"], ddb.Number("1")) || in.Requests() != 2 {
			t.Errorf("outcome %v, image %v, %d requests", res.Outcome, res.Image, in.Requests())
		}
		// It could have come into being in between. It has not changed since.
		if res = s.Update(t.Context(), b.onItem("there"), ddb.Options{Absence: true}); !isImageless(res) {
			t.Errorf("outcome %v: %v", res.Outcome, res.Err)
		}
	})
	t.Run("absence that cannot be confirmed", func(t *testing.T) {
		s, _ := b.sender(t, func(n int) fault.Kind {
			if n == 0 {
				return fault.NoImage
			}
			return fault.DropRequest
		})
		if res := s.Update(t.Context(), b.onItem("there"), ddb.Options{Absence: true}); res.Outcome != ddb.Refused || isImageless(res) {
			t.Errorf("outcome %v: %v", res.Outcome, res.Err)
		}
	})
	t.Run("in a transaction", func(t *testing.T) {
		s, _ := b.sender(t, always(fault.NoImage))
		client, _ := s.Client.(ddb.Transactor)
		s.Partition = "id"
		if res := s.Transact(t.Context(), client, ddb.Options{}, s.PutOf(ddb.Item{"id": ddb.Text("there")})); !isImageless(res) {
			t.Errorf("outcome %v: %v", res.Outcome, res.Err)
		}
	})
	t.Run("an endpoint that shows them", func(t *testing.T) {
		s, in := b.sender(t, always(fault.None))
		missing := func(requests int) {
			t.Helper()
			res := s.Update(t.Context(), b.onItem("missing"), ddb.Options{Absence: true})
			if res.Outcome != ddb.Condition || len(res.Image) != 0 || in.Requests() != requests {
				t.Errorf("outcome %v, image %v, %d requests, want %d", res.Outcome, res.Image, in.Requests(), requests)
			}
		}
		missing(2) // confirmed by a read
		missing(4)
		b.check(t, "there", in, s.Update(t.Context(), b.onItem("there"), ddb.Options{Absence: true, OnItem: true}), ending{ddb.Condition, true, 5, "1"})
		missing(6) // no more: it has shown one
	})
}
