package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// rate per second.
func rate(perSecond float64) string {
	if math.IsInf(perSecond, 0) {
		return "any"
	}
	return figure(perSecond)
}

// figure writes a number with about three digits: more would be noise.
func figure(n float64) string {
	switch {
	case n >= 99.95:
		return thousands(int64(math.Round(n)))
	case n >= 9.995:
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.2f", n)
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func usd(n float64) string {
	switch {
	case n >= 100:
		return "$" + thousands(int64(math.Round(n)))
	case n != 0 && n < 1:
		return fmt.Sprintf("$%.3f", n)
	}
	return fmt.Sprintf("$%.2f", n)
}

// latency with about three digits.
func latency(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case ms >= 1000:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return thousands(int64(n)) + " " + what + "s"
}

// enumerate joins names as a sentence does.
func enumerate(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// quoted: the names of modes contain commas.
func quoted(name string) string { return `"` + name + `"` }

func quotedAll(names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, quoted(n))
	}
	return all
}
