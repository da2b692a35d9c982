package localdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/dynahold/dynahold/localdb"
)

// ownerCache names the cache folder for a copy of this test binary that plays
// the owner of an engine instead of running tests.
const ownerCache = "LOCALDB_TEST_OWNER_CACHE"

// startDeadline is generous: npm may have to fetch the engine first.
const startDeadline = 2 * time.Minute

func TestMain(m *testing.M) {
	if cache, ok := os.LookupEnv(ownerCache); ok {
		if err := own(cache); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// own waits for a byte on standard input, starts an engine, uses it, prints its
// endpoint and keeps it until standard input ends.
func own(cache string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	e, err := localdb.Start(ctx, localdb.Config{CacheDir: cache})
	if err != nil {
		return err
	}
	if _, err := e.Client().ListTables(ctx, &dynamodb.ListTablesInput{}); err != nil {
		return errors.Join(err, e.Close())
	}
	fmt.Println(e.Endpoint())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, e.Close())
}
