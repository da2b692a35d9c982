package ddb

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// farFuture bounds times read from items: a nonsense value must not overflow.
const farFuture = 253402300799 // the end of the year 9999, Unix seconds

// Never is the end of a hold that does not end by itself.
func Never() time.Time { return time.Unix(farFuture, 0) }

// Later is a new end of something whose last end that was sent is given: ends
// only grow, also where the wall clock was set back, so that each is a new beat
// to those who watch, and that no late copy moves the end back.
func Later(until, last time.Time) time.Time {
	if least := last.Add(time.Millisecond); until.Before(least) {
		return least
	}
	return until
}

// Seconds writes a time as Unix seconds with milliseconds, rounded up, without
// trailing zeros: whole seconds look just as a program that follows the
// article by hand writes them.
func Seconds(t time.Time) string {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return milli(ms)
}

// LeaseSeconds writes a duration in seconds.
func LeaseSeconds(d time.Duration) string { return milli(d.Milliseconds()) }

func milli(ms int64) string {
	var room [24]byte
	s := strconv.AppendInt(room[:0], ms/1000, 10)
	if frac := ms % 1000; frac != 0 {
		s = strconv.AppendInt(s, 1000+frac, 10)
		s[len(s)-4] = '.' // instead of the 1 that keeps leading zeros
		s = bytes.TrimRight(s, "0")
	}
	return string(s)
}

// ParseSeconds reads Unix seconds, clamped to sensible times.
func ParseSeconds(s string) (time.Time, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return time.Time{}, false
	}
	f = max(0, min(f, farFuture))
	whole, frac := math.Modf(f)
	return time.Unix(int64(whole), int64(math.Round(frac*1e3))*int64(time.Millisecond)), true
}
