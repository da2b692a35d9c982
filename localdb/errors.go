package localdb

import (
	"errors"
	"fmt"
)

var (
	// ErrNoEngine says that no endpoint is given and no engine could be found
	// or fetched. The error's text names the ways out.
	ErrNoEngine = errors.New("localdb: no DynamoDB-compatible engine found")

	// ErrChecksum says that a fetched or cached file is not the one that was
	// published. It was not run.
	ErrChecksum = errors.New("localdb: checksum does not match")
)

// noEngine gives the reason and, since whoever reads it cannot go on without,
// the ways out.
func noEngine(reason error) error {
	return fmt.Errorf("%w: %w; ways out: set %s to any DynamoDB-compatible server "+
		"(with an AWS account: Amazon DynamoDB itself), "+
		"or install dynoxide %s on the PATH, "+
		"or install npm, which is used to fetch it once into a folder that can be written (Config.CacheDir; by default that of os.UserCacheDir, on Linux $XDG_CACHE_HOME or $HOME/.cache)",
		ErrNoEngine, reason, envServiceEndpoint, version)
}
