// Package delegate changes one item for many processes with one write: a change is a
// command under a name, with arguments, so that another process can carry it out.
//
//	commands, err := delegate.New(products, delegate.Config{})
//	take, err := delegate.Command(commands, "take/v1", func(ctx context.Context, p *Product, a Take) (Left, error) {
//		if p.Stock < a.N {
//			return Left{}, errSoldOut // its caller's alone: the others go on
//		}
//		p.Stock -= a.N
//		return Left{p.Stock}, nil
//	})
//	left, err := take.Do(ctx, key, Take{N: 2})
//
// Choose it where more processes want one item than its writes can serve one by one, and
// the change is more than an expression. A command must be deterministic, short, without an
// effect elsewhere, and the same under its name in all programs; another version is another
// name.
//
// # Promise
//
// A command is applied once, or not at all. Do returns its result; *[RefusedError] if it
// refused; [repo.ErrOutcomeUnknown] if nobody can tell; every other error says that it is
// not applied. That holds for lost answers, copies of requests, processes that die or stop
// at any moment, and clocks that differ. Changes by locks, versions, expressions, event
// times and transactions go on as promised on the same item; Once(id) is theirs, too. On
// items of package pessimistic commands take no lock: a round waits while somebody holds
// the item, as every writer without one.
//
// A panic is its caller's error. Arguments have at most [MostArgs] bytes of JSON, results
// [MostResult]. If ctx ends, the command is taken back, and the error says so, unless it was
// applied before. What a process sent that died is applied at most once, by who leads
// within a minute, or not at all.
//
// A program that does not know a name leaves the command to its caller, which carries it
// out itself. So programs with and without it can run side by side.
//
// # Protocol
//
// Who is alone reads the item and writes it under its version. If others write too, one of
// them leads: it carries out the commands of all who wait with one write. The others put
// theirs as a mail into a row, and read the item until it has their answers. The item says
// who leads, and for each sender which mail was served last, with the answers: written with
// the change, that is the evidence. Where that is more than 2 KB, the rows get the
// answers, and the item forgets them. A leader without work says so after 40 ms at least. One
// that does not write for 50 to 100 ms, or some requests, is replaced: two that lead are slow,
// never wrong, for the version decides. A sender has one mail at a time: docs/protocol.md.
//
// # Costs
//
// Alone 2 requests, as an optimistic change; the first time on an item that was put by hand
// 3. Under contention a call is a write of a unit, one or two reads, and a share of the
// leader's write and reads. Callers of one process share a mail. The rows lie in the items'
// table, or in one of their own (Config.Mail), and go by its TTL after 2 hours: who stood
// still for so long is told ErrOutcomeUnknown, as is who has sent mail when the item is
// deleted. Operators see who leads and what waits, and take it out, by [MailsOf] or the tool.
//
// The idea is flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010) and delegation
// (Lozi, David, Thomas, Lawall, Muller, USENIX ATC 2012).
package delegate
