package repotest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// suiteOf is the suite of accounts, whose repository is wrapped.
func suiteOf(t *testing.T, wrap func(repo.Repository[account], *repo.Table[account], *dynamodb.Client) repo.Repository[account]) repotest.Suite[account] {
	t.Helper()
	r := rig.New(t)
	return repotest.Suite[account]{
		Open: func(tb testing.TB, client *dynamodb.Client) repo.Repository[account] {
			table := rig.Must(repo.NewTable[account](client, r.Table, repo.TableConfig{}))(tb)
			rig.Is(tb, table.EnsureTable(context.Background()))
			return wrap(rig.Must(optimistic.New(table, optimistic.Config{Attempts: 1000}))(tb), table, client)
		},
		New:    func(id string) account { return account{ID: id, At: 1} },
		Key:    func(a account) repo.Key { return repo.Key{Partition: a.ID} },
		Add:    func(a *account) { a.Balance++; a.At++ },
		Count:  func(a account) int { return a.Balance },
		Client: r.Client,
	}
}

func unwrapped(r repo.Repository[account], _ *repo.Table[account], _ *dynamodb.Client) repo.Repository[account] {
	return r
}

// All strategies, in all modes, pass in internal/suite/conformance.
func TestAStrategyPasses(t *testing.T) {
	t.Parallel()
	repotest.Run(t, suiteOf(t, unwrapped))
}

// wrapper is a repository in which one method is not as it was.
type wrapper struct {
	repo.Repository[account]
	table  *repo.Table[account]
	client *dynamodb.Client
}

type change = func(context.Context, *account) error

// What is wrong with a wrapper, and what of the suite finds it.
var faulty = map[string]struct {
	wrap  func(w wrapper) repo.Repository[account]
	finds string
}{
	"swallows an error":               {func(w wrapper) repo.Repository[account] { return swallows{w} }, "items come and go"},
	"swallows a lost answer":          {func(w wrapper) repo.Repository[account] { return forgets{w} }, "verdicts under outages"},
	"runs the change twice":           {func(w wrapper) repo.Repository[account] { return twice{w} }, "items come and go"},
	"writes without a condition":      {func(w wrapper) repo.Repository[account] { return writes{w} }, "a change in the middle of another"},
	"repeats an unknown outcome":      {func(w wrapper) repo.Repository[account] { return repeats{w} }, "verdicts under outages"},
	"loses the meaning of errors":     {func(w wrapper) repo.Repository[account] { return texts{w} }, "items come and go"},
	"has a context of its own":        {func(w wrapper) repo.Repository[account] { return detached{w} }, "a context that has ended"},
	"creates what is there":           {func(w wrapper) repo.Repository[account] { return overwrites{w} }, "one of many creates wins"},
	"hides its change from the inner": {func(w wrapper) repo.Repository[account] { return hides{w} }, "a change inside itself is refused"},
	"recovers panics":                 {func(w wrapper) repo.Repository[account] { return recovers{w} }, "a change that fails writes nothing"},
	"does not check its input":        {func(w wrapper) repo.Repository[account] { return unchecked{w} }, "bad input is refused"},
}

type swallows struct{ wrapper }

func (w swallows) Delete(ctx context.Context, key repo.Key) error {
	if err := w.Repository.Delete(ctx, key); !errors.Is(err, repo.ErrNotFound) {
		return err
	}
	return nil
}

type forgets struct{ wrapper }

func (w forgets) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	a, err := w.Repository.Update(ctx, key, do)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		err = errors.New("please try again")
	}
	return a, err
}

type twice struct{ wrapper }

func (w twice) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	return w.Repository.Update(ctx, key, func(ctx context.Context, a *account) error {
		if err := do(ctx, a); err != nil {
			return err
		}
		return do(ctx, a)
	})
}

type writes struct{ wrapper }

func (w writes) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	a, err := w.Get(ctx, key)
	if err == nil {
		err = do(ctx, &a)
	}
	if err != nil {
		return account{}, err
	}
	item, err := attributevalue.MarshalMap(a)
	if err == nil {
		name := w.table.Name()
		_, err = w.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: item})
	}
	return a, err
}

type repeats struct{ wrapper }

func (w repeats) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	a, err := w.Repository.Update(ctx, key, do)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		a, err = w.Repository.Update(ctx, key, do)
	}
	return a, err
}

type texts struct{ wrapper }

func (w texts) Get(ctx context.Context, key repo.Key) (account, error) {
	a, err := w.Repository.Get(ctx, key)
	if err != nil {
		err = fmt.Errorf("account %v: %v", key, err) //nolint:errorlint // that is what is wrong
	}
	return a, err
}

type detached struct{ wrapper }

func (w detached) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	return w.Repository.Update(context.WithoutCancel(ctx), key, do)
}

type overwrites struct{ wrapper }

func (w overwrites) Create(ctx context.Context, a account) (account, error) {
	return w.Upsert(ctx, repo.Key{Partition: a.ID}, func(_ context.Context, to *account) error {
		a.Version, a.Created, a.Updated = to.Version, to.Created, to.Updated
		*to = a
		return nil
	})
}

type hides struct{ wrapper }

func (w hides) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	return w.Repository.Update(ctx, key, func(_ context.Context, a *account) error { return do(ctx, a) })
}

type recovers struct{ wrapper }

func (w recovers) Update(ctx context.Context, key repo.Key, do change) (_ account, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return w.Repository.Update(ctx, key, do)
}

type unchecked struct{ wrapper }

func (w unchecked) Upsert(ctx context.Context, key repo.Key, do change) (account, error) {
	if do == nil {
		return w.Get(ctx, key)
	}
	return w.Repository.Upsert(ctx, key, do)
}

const plantedIn = "DYNAHOLD_TEST_PLANTED"

// TestPlanted is what TestTheSuiteFindsWhatIsWrong runs in a process of its own.
func TestPlanted(t *testing.T) {
	f, planted := faulty[os.Getenv(plantedIn)]
	if !planted {
		return
	}
	repotest.Run(t, suiteOf(t, func(r repo.Repository[account], table *repo.Table[account], client *dynamodb.Client) repo.Repository[account] {
		return f.wrap(wrapper{r, table, client})
	}))
}

// Each wrapper that breaks a promise fails, where it is broken.
func TestTheSuiteFindsWhatIsWrong(t *testing.T) {
	if os.Getenv(plantedIn) != "" {
		return
	}
	for name, f := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subtest := "^TestPlanted$/^" + strings.ReplaceAll(f.finds, " ", "_") + "$"
			cmd := exec.CommandContext(t.Context(), rig.Must(os.Executable())(t), "-test.run="+subtest, "-test.v") // this test's own binary
			cmd.Env = append(os.Environ(), plantedIn+"="+name, "AWS_ENDPOINT_URL_DYNAMODB="+rig.Endpoint())
			out, err := cmd.CombinedOutput()
			if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) {
				t.Fatalf("it passes (%v):\n%s", err, out)
			}
			if want := "--- FAIL: TestPlanted/" + strings.ReplaceAll(f.finds, " ", "_"); !strings.Contains(string(out), want) || strings.Contains(string(out), "\ngoroutine ") {
				t.Errorf("it fails in another way:\n%s", out)
			}
		})
	}
}

// A suite that cannot test anything is refused, and says why.
func TestSuitesThatTestNothing(t *testing.T) {
	if os.Getenv(plantedIn) == "" {
		for name, want := range badSuites {
			cmd := exec.CommandContext(t.Context(), rig.Must(os.Executable())(t), "-test.run=^TestSuitesThatTestNothing$")
			cmd.Env = append(os.Environ(), plantedIn+"="+name, "AWS_ENDPOINT_URL_DYNAMODB="+rig.Endpoint())
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
		return
	}
	s := suiteOf(t, unwrapped)
	switch os.Getenv(plantedIn) {
	case "no Open":
		s.Open = nil
	case "Add adds nothing":
		s.Add = func(*account) {}
	case "one key":
		s.New = func(string) account { return account{ID: "x"} }
	}
	repotest.Run(t, s)
}

var badSuites = map[string]string{
	"no Open":          "Suite.Open is nil",
	"Add adds nothing": "Suite.Add must make Count one more: it was 0, and is 0",
	"one key":          "Suite.New must give another id another key",
}
