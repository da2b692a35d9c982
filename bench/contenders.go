package main

import "github.com/dynahold/dynahold/internal/load"

// peers are the other ways to do it.
func peers() []load.Contender {
	return []load.Contender{article(), version(), guregu()}
}

// contenders returns the peers and every mode of this library.
func contenders() []load.Contender { return append(peers(), load.Modes()...) }
