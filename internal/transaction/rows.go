package transaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// checkRows refuses rows that cannot be in one transaction with its items.
func (m *commit) checkRows() error {
	at := map[string]bool{}
	cores := m.cores(m.rows)
	for i, core := range cores {
		if err := oneClient(core, cores[0]); err != nil {
			return err
		}
		if i < len(m.parts) {
			at[m.parts[i].place] = true
		}
	}
	for _, r := range m.rows {
		if at[r.Place()] {
			return fmt.Errorf("%w: row %v in table %q is in the transaction by a repository too: each row takes part by one", repo.ErrConfig, r.Key, r.Table.Name)
		}
		if err := r.Usable(); err != nil {
			return fail(rowFailure(r, fmt.Errorf("%w: nothing was written", err)))
		}
	}
	return nil
}

// cores are the tables of the items, and of some rows behind them.
func (m *commit) cores(rows []*rows.Row) (cores []*stored.Table) {
	for _, p := range m.parts {
		cores = append(cores, p.core.Table)
	}
	for _, r := range rows {
		cores = append(cores, r.Table)
	}
	return cores
}

// judgeRows says what the rows whose condition has failed tell.
func (m *commit) judgeRows(ctx context.Context, res ddb.Result, clean bool) (verdicts []protocol.Verdict) {
	for i, r := range m.sent {
		if n := len(m.parts) + i; n < len(res.Images) && res.Images[n].Failed {
			verdicts = append(verdicts, r.Judge(ctx, res.Images[n].Item, clean))
		}
	}
	return verdicts
}

// refusedRows are the failures of rows, where nothing was written; again says that
// some want something else now, so that another request may pass; anew that the closure
// must read some again.
func (m *commit) refusedRows(ctx context.Context, res ddb.Result) (broken []Failure, again, anew bool) {
	for i, r := range m.sent {
		n := len(m.parts) + i
		if n >= len(res.Images) || !res.Images[n].Failed {
			continue
		}
		if why := r.Refused(ctx, res.Images[n].Item); errors.Is(why, rows.ErrAgain) {
			anew = true
		} else if why != nil {
			broken = append(broken, rowFailure(r, fmt.Errorf("%w: nothing was written", why)))
		} else {
			again = true
		}
	}
	return broken, again, anew
}

// settleRows gives back what the transaction was to end, after a request without a
// verdict.
func (m *commit) settleRows(ctx context.Context) (verdict protocol.Verdict) {
	for _, r := range m.sent {
		if e, ok := r.Ending(); ok {
			verdict = lockless.JudgeParts(verdict, e.Settle(ctx))
		}
	}
	return verdict
}
