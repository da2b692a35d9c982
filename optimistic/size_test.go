package optimistic_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// wide has many attributes, each of which counts in an update.
type wide struct {
	ID                                 string `dynamodbav:"id" repo:"pk"`
	Version                            int64  `dynamodbav:"version" repo:"version"`
	Text                               string
	A, B, C, D, E, F, G, H, I, J, K, L int
	M, N, O, P, Q, R, S, T, U, V, W, X int
	AA, BB, CC, DD, EE, FF, GG, HH, II int
	JJ, KK, LL, MM, NN, OO, PP, QQ, RR int
	SS, TT, UU, VV, WW, XX, YY, ZZ, AB int
}

// An update near the greatest size counts as more than the item that it leaves,
// by what it sets. What would be refused for that is not sent, and what is
// written can be locked.
func TestUpdatesOfManyAttributesNearTheGreatestSize(t *testing.T) {
	b := rig.New(t)
	table := rig.Must(repo.NewTable[wide](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	versions := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	least, most := 407_000, 408_576 // lengths of the text: written, refused
	for least+1 < most {
		text := (least + most) / 2
		b.Count.Reset()
		w := wide{ID: "w", Text: strings.Repeat("x", text)}
		_, err := versions.Create(t.Context(), w)
		switch {
		case errors.Is(err, repo.ErrTooLarge):
			most = text
			w.Version = 1
			_, saved := versions.Save(t.Context(), w)
			rig.Is(t, saved, repo.ErrTooLarge)
			if n := b.Count.Total(); n != 0 {
				t.Fatalf("text of %d: %d requests for what is too large: %v", text, n, err)
			}
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				_, err := versions.In(tx).Save(ctx, w)
				return err
			}), repo.ErrTooLarge)
			continue
		case err != nil:
			t.Fatalf("text of %d: %v", text, err)
		}
		least = text
		rig.Must(locks.Update(t.Context(), repo.Key{Partition: "w"}, func(_ context.Context, w *wide) error { w.A++; return nil }))(t)
		rig.Is(t, versions.Delete(t.Context(), repo.Key{Partition: "w"}))
	}
	if least < 407_500 {
		t.Errorf("a text of %d is refused", most)
	}
}
