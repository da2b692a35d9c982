package pace

import "time"

// Forecast predicts when one's turn in a line will come, from looks at the line,
// and says when to send the next look. Several may be under way at once.
//
// Until who is next hears of its turn the whole line stands still. One look after
// another tells it half a trip late on average. Looks that are evenly spaced, and do
// not wait for each other's answers, tell it half a space late. To send them all
// the time would cost more than they gain: they begin when the turn is about to come.
type Forecast struct {
	Learned

	ahead int       // turns that end before ours begins, the present one among them
	from  time.Time // when the present turn began, as far as that can be told
	seen  time.Time // the moment that the newest look has shown
}

// Learned is what waiting in a line teaches those who will wait there later.
type Learned struct {
	Turn time.Duration // how long a turn takes; 0: not known
	Trip time.Duration // how long a look takes, there and back; 0: not known
	Off  time.Duration // by how much looks differ from that, on average
	Long time.Duration // how long the last turn took, if that was very long; else 0

	longer time.Duration // the same of the turn before that
	trips  int           // looks that Trip and Off are made of, up to a number
}

// Uneven reports whether looks take now long and now short.
func (l Learned) Uneven() bool { return l.Off > l.Trip*3/10 } // of an even latency they are off by less

// Spacing bounds how close looks may follow each other.
type Spacing struct {
	Share int           // so many to a trip
	Least time.Duration // from one look to the next
	Limit time.Duration // the same, at most
}

// By how many turns a new sample is outweighed in the estimate: the estimate rises slowly
// and falls fast. Who looks too late makes the line slow, and would learn from it
// that it is slow; who looks too early pays for some looks.
const (
	whenSlower = 16
	whenFaster = 4
)

// manyTrips is how many looks outweigh a new one. Of the first ones those that are faster
// count for more: else one request that was slow by chance would be believed for as many
// turns.
const manyTrips = 16

// Took notes how long a look took, or the request that entered the line.
func (f *Forecast) Took(trip time.Duration) {
	if f.Trip == 0 {
		f.Trip = trip
		return
	}
	f.trips = min(f.trips+1, manyTrips-1)
	trip = min(trip, 2*f.Trip) // one that took very long says little of the next
	f.Off += ((trip - f.Trip).Abs() - f.Off) / manyTrips
	if trip < f.Trip {
		f.Trip += (trip - f.Trip) / time.Duration(f.trips+1)
	} else {
		f.Trip += (trip - f.Trip) / manyTrips
	}
}

// See notes what a look showed that was sent at asked and answered at answered: how
// many turns end before ours begins. The first one is the answer to the request that
// entered the line.
func (f *Forecast) See(ahead int, asked, answered time.Time) {
	at, turn := asked.Add(answered.Sub(asked)/2), f.turn()
	switch passed := f.ahead - ahead; {
	case f.seen.IsZero():
		f.from = at.Add(-turn / 2)
	case passed != 0:
		// The present turn began since the look before, and no longer ago than a turn takes.
		from := at.Add(-min(max(at.Sub(f.seen), 0), turn) / 2)
		if passed > 0 {
			f.learn(from.Sub(f.from), passed)
		}
		f.from = from
	}
	f.ahead, f.seen = ahead, at
}

// Came notes that a look, sent at asked and answered at answered, showed that our turn
// has come. The line may have waited for us since, so the turns before have taken no
// longer than that.
func (f *Forecast) Came(asked, answered time.Time) {
	at := asked.Add(answered.Sub(asked) / 2)
	if d := at.Sub(f.from); f.ahead > 0 && d < time.Duration(f.ahead)*f.turn() {
		f.learn(d, f.ahead)
	}
}

// learn takes in that n turns took d. One that took very long says little of the next,
// unless the two before it did, too: behind one that stalled comes one whose holder had
// looked seldom. Nor do many that did together, for it may have been
// one of them: they count for one.
func (f *Forecast) learn(d time.Duration, n int) {
	turn := f.turn()
	sample, long := max(d, 0)/time.Duration(n), min(f.Long, f.longer)
	if sample > 2*turn {
		sample, f.Long, f.longer = max(min(sample, long), 2*turn), sample, f.Long
		if long == 0 {
			n = 1
		}
	} else {
		f.Long, f.longer = 0, 0
	}
	weight := n + whenSlower
	if sample < turn {
		weight = n + whenFaster
	}
	f.Turn = turn + (sample-turn)*time.Duration(n)/time.Duration(weight)
}

// turn is the estimate. No turn is shorter than a trip: the news of it has to arrive,
// and the write that ends it.
func (f *Forecast) turn() time.Duration { return max(f.Turn, f.Trip) }

// allowance is how much earlier a turn may end than the estimate says: a quarter of it
// where latency is even, and up to three quarters where requests take now long and now
// short, for so do turns. Each look more costs a read, so even latency must cost none.
func (f *Forecast) allowance(turn time.Duration) time.Duration {
	switch {
	case f.Turn == 0: // nothing is known of turns: trips that were slow must not make them slow
		return turn * 2 / 3
	case !f.Uneven():
		return turn / 4
	}
	uneven := f.Off - f.Trip*3/10
	return min(turn/4+time.Duration(2*float64(turn)*float64(uneven)/float64(f.Trip)), turn*3/4)
}

// Next is when to send the look after the one that was sent at last.
func (f *Forecast) Next(last time.Time, s Spacing) time.Time {
	turn, behind := f.turn(), time.Duration(f.ahead-1)
	// Turns differ, so looks begin more than half a turn before ours is due, and a look
	// is under way for half a trip before it sees anything. Those further back look
	// once after three quarters of the time: if the line moves faster than it did they
	// notice, for a number of looks that grows with the logarithm.
	early := turn*7/10 + behind*f.allowance(turn) + f.Trip/2
	begin := f.from.Add((behind+1)*turn - early)
	// A turn that has taken long may take longer: to hear of its end an eighth later is
	// little beside it.
	gap := max(last.Sub(f.from)/8, f.Trip/time.Duration(s.Share), s.Least)
	if f.ahead > 2 {
		gap = max(gap, f.Trip) // one after the other
	}
	return last.Add(min(max(gap, begin.Sub(last)), s.Limit))
}
