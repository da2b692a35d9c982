// Package repotest serves the tests of programs that use this module: against a real
// engine, such as that of package localdb.
//
// A [Clock] ends leases without sleeping:
//
//	var clock repotest.Clock
//	table, err := repo.NewTable[account](client, "accounts", repo.TableConfig{Clock: clock.Now})
//	// ... one process takes a lock, and dies ...
//	clock.Advance(time.Minute) // and the next one has it at once
//
// [Faults] break one request of a client, as a bad network does:
//
//	faults := repotest.NewFaults(t, client)
//	accounts := openAccounts(t, faults.Client())
//	faults.Nth("UpdateItem", 2, repotest.AnswerLost) // the commit of a locked change
//	_, err := accounts.Update(ctx, key, deposit)     // and yet it is made once, and err is nil
//
// [Run] checks that what wraps a repository still keeps what [repo.Repository] promises:
//
//	repotest.Run(t, repotest.Suite[account]{Open: openAccounts, New: newAccount, ...})
//
// The programs of docs/testing.md use all three. It is for tests only: nothing in it
// belongs into a program.
package repotest
