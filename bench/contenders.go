package main

import (
	"regexp"

	"github.com/dynahold/dynahold/internal/load"
)

// peers are the other ways to do it.
func peers() []load.Contender {
	return []load.Contender{article(), version(), guregu()}
}

// contenders returns the peers and every mode of this library.
func contenders() []load.Contender { return append(peers(), load.Modes()...) }

// selected are those of which the name matches.
func selected[T any](all []T, pattern *regexp.Regexp, name func(T) string) (some []T) {
	for _, one := range all {
		if pattern.MatchString(name(one)) {
			some = append(some, one)
		}
	}
	return some
}
