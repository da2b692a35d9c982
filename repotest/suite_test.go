package repotest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// blob is an item whose key is binary, which Go does not compare by ==.
type blob struct {
	ID      []byte `dynamodbav:"id" repo:"pk"`
	Balance int    `dynamodbav:"balance"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

func TestBinaryKeysPass(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	repotest.Run(t, repotest.Suite[blob]{
		Open: func(tb testing.TB, client *dynamodb.Client) repo.Repository[blob] {
			table := rig.Must(repo.NewTable[blob](client, r.Table, repo.TableConfig{}))(tb)
			rig.Is(tb, table.EnsureTable(context.Background()))
			return rig.Must(optimistic.New(table, optimistic.Config{Attempts: 1000}))(tb)
		},
		New:    func(id string) blob { return blob{ID: []byte(id)} },
		Key:    func(b blob) repo.Key { return repo.Key{Partition: b.ID} },
		Add:    func(b *blob) { b.Balance++ },
		Count:  func(b blob) int { return b.Balance },
		Client: r.Client,
	})
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
	"excludes nobody elsewhere":       {func(w wrapper) repo.Repository[account] { return writes{w} }, "no change is lost"},
	"adds once more when repeated":    {func(w wrapper) repo.Repository[account] { return adds{w} }, "verdicts under faults"},
	"does not say that it was told":   {func(w wrapper) repo.Repository[account] { return silent{w} }, "a context that ends on the way"},
	"reads from a cache":              {func(w wrapper) repo.Repository[account] { return &caches{wrapper: w} }, "a read is of now"},
	"remembers that there was none":   {func(w wrapper) repo.Repository[account] { return &caches{wrapper: w, none: true} }, "a read is of now"},
	"takes unknown for written":       {func(w wrapper) repo.Repository[account] { return hopes{w} }, "verdicts under outages"},
	"says that a change failed":       {updates(failsAfterwards()), "no change is lost"},
	"puts the key back":               {updates(putsTheKeyBack), "a change that fails writes nothing"},
	"writes what failed":              {updates(writesWhatFailed), "a change that fails writes nothing"},
	"tries again what is refused":     {updates(triesAgain), "a change inside itself is refused"},
	"makes what is not there":         {updates(makesIt), "items come and go"},
	"keeps what is to be removed":     {updates(keepsWhatGoes), "items come and go"},
	"refuses to change nothing":       {updates(refusesNothing), "items come and go"},
	"begins anew what is there":       {func(w wrapper) repo.Repository[account] { return anew{w} }, "items come and go"},
	"takes another's for its own":     {func(w wrapper) repo.Repository[account] { return yields{w} }, "a change in the middle of another"},
	"keeps what Upsert is to remove":  {func(w wrapper) repo.Repository[account] { return keepsBoth{w} }, "items come and go"},
	"makes what failed":               {func(w wrapper) repo.Repository[account] { return makesWhatFailed{w} }, "a change that fails writes nothing"},
	"calls a change that is none":     {func(w wrapper) repo.Repository[account] { return wraps{w} }, "bad input is refused"},
	"reads for nobody":                {func(w wrapper) repo.Repository[account] { return detachedReads{w} }, "a context that has ended"},
}

// altered has another Update.
type altered struct {
	wrapper
	update func(context.Context, wrapper, repo.Key, change) (account, error)
}

func (a altered) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	if do == nil {
		return a.wrapper.Update(ctx, key, nil)
	}
	return a.update(ctx, a.wrapper, key, do)
}

func updates(by func(context.Context, wrapper, repo.Key, change) (account, error)) func(wrapper) repo.Repository[account] {
	return func(w wrapper) repo.Repository[account] { return altered{w, by} }
}

// failsAfterwards says of every second change that it has failed.
func failsAfterwards() func(context.Context, wrapper, repo.Key, change) (account, error) {
	var n atomic.Int64
	return func(ctx context.Context, w wrapper, key repo.Key, do change) (account, error) {
		a, err := w.Update(ctx, key, do)
		if err == nil && n.Add(1)%2 == 0 {
			err = errors.New("try again later")
		}
		return a, err
	}
}

func putsTheKeyBack(ctx context.Context, w wrapper, key repo.Key, do change) (account, error) {
	return w.Update(ctx, key, func(ctx context.Context, a *account) error {
		was := *a
		err := do(ctx, a)
		if a.ID != was.ID {
			*a = was
		}
		return err
	})
}

func writesWhatFailed(ctx context.Context, w wrapper, key repo.Key, do change) (account, error) {
	var failed error
	a, err := w.Update(ctx, key, func(ctx context.Context, a *account) error {
		if failed = do(ctx, a); errors.Is(failed, repo.Remove) {
			return failed
		}
		return nil
	})
	if err == nil && !errors.Is(failed, repo.Remove) {
		err = failed
	}
	return a, err
}

func makesIt(ctx context.Context, w wrapper, key repo.Key, do change) (account, error) {
	return w.Upsert(ctx, key, do)
}

func triesAgain(ctx context.Context, w wrapper, key repo.Key, do change) (a account, err error) {
	for range 3 {
		if a, err = w.Update(ctx, key, do); !errors.Is(err, repo.ErrNested) {
			break
		}
	}
	return a, err
}

func keepsWhatGoes(ctx context.Context, w wrapper, key repo.Key, do change) (account, error) {
	return w.Update(ctx, key, func(ctx context.Context, a *account) error {
		if err := do(ctx, a); !errors.Is(err, repo.Remove) {
			return err
		}
		return nil
	})
}

type keepsBoth struct{ wrapper }

func (w keepsBoth) Upsert(ctx context.Context, key repo.Key, do change) (account, error) {
	if do == nil {
		return w.Repository.Upsert(ctx, key, nil)
	}
	return w.Repository.Upsert(ctx, key, func(ctx context.Context, a *account) error {
		if err := do(ctx, a); !errors.Is(err, repo.Remove) {
			return err
		}
		return nil
	})
}

// makesWhatFailed writes an item that is not there also if its change fails.
type makesWhatFailed struct{ wrapper }

func (w makesWhatFailed) Upsert(ctx context.Context, key repo.Key, do change) (account, error) {
	if do == nil {
		return w.Repository.Upsert(ctx, key, nil)
	}
	var failed error
	a, err := w.Repository.Upsert(ctx, key, func(ctx context.Context, a *account) error {
		if failed = do(ctx, a); a.Version > 0 {
			return failed
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	return a, err
}

func refusesNothing(ctx context.Context, w wrapper, key repo.Key, do change) (account, error) {
	return w.Update(ctx, key, func(ctx context.Context, a *account) error {
		was := *a
		if err := do(ctx, a); err != nil || *a != was {
			return err
		}
		return repo.ErrConflict
	})
}

// anew changes what is there as if it were not.
type anew struct{ wrapper }

func (w anew) Upsert(ctx context.Context, key repo.Key, do change) (account, error) {
	if do == nil {
		return w.Repository.Upsert(ctx, key, nil)
	}
	return w.Repository.Upsert(ctx, key, func(ctx context.Context, a *account) error {
		a.Balance = 0
		return do(ctx, a)
	})
}

// yields makes what is not there, or takes for its own what another has made meanwhile.
type yields struct{ wrapper }

func (w yields) Upsert(ctx context.Context, key repo.Key, do change) (account, error) {
	a, err := w.Get(ctx, key)
	if do == nil || !errors.Is(err, repo.ErrNotFound) {
		return w.Repository.Upsert(ctx, key, do)
	}
	a.ID, _ = key.Partition.(string)
	if err = do(ctx, &a); err == nil {
		a, err = w.Create(ctx, a)
	}
	if errors.Is(err, repo.ErrExists) {
		return w.Get(ctx, key)
	}
	return a, err
}

// adds changes an item without a condition, by an expression: an answer that is lost doubles it.
type adds struct{ wrapper }

func (w adds) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	before, err := w.Get(ctx, key)
	after := before
	if err == nil {
		err = do(ctx, &after)
	}
	if err != nil {
		return account{}, err
	}
	name, add := w.table.Name(), "ADD balance :n"
	_, err = w.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &name, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: before.ID}},
		UpdateExpression: &add, ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: fmt.Sprint(after.Balance - before.Balance)}}})
	return after, err
}

// silent has errors of its own where its caller has left.
type silent struct{ wrapper }

func (w silent) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	a, err := w.Repository.Update(ctx, key, do)
	if err != nil && ctx.Err() != nil && repo.VerdictOf(err) == repo.NotWritten {
		err = errors.New("not available")
	}
	return a, err
}

// caches keeps what it has read, items or that there is none, until it changes something itself.
type caches struct {
	wrapper
	none bool
	mu   sync.Mutex
	seen map[repo.Key]func() (account, error)
}

func (w *caches) Get(ctx context.Context, key repo.Key) (account, error) {
	w.mu.Lock()
	known := w.seen[key]
	w.mu.Unlock()
	if known != nil {
		return known()
	}
	a, err := w.Repository.Get(ctx, key)
	if err == nil && !w.none || w.none && errors.Is(err, repo.ErrNotFound) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.seen == nil {
			w.seen = map[repo.Key]func() (account, error){}
		}
		w.seen[key] = func() (account, error) { return a, err }
	}
	return a, err
}

func (w *caches) forget(key repo.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, key)
}

func (w *caches) Create(ctx context.Context, a account) (account, error) {
	defer w.forget(repo.Key{Partition: a.ID})
	return w.Repository.Create(ctx, a)
}

func (w *caches) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	defer w.forget(key)
	return w.Repository.Update(ctx, key, do)
}

func (w *caches) Upsert(ctx context.Context, key repo.Key, do change) (account, error) {
	defer w.forget(key)
	return w.Repository.Upsert(ctx, key, do)
}

func (w *caches) Delete(ctx context.Context, key repo.Key) error {
	defer w.forget(key)
	return w.Repository.Delete(ctx, key)
}

// hopes that what nobody knows has been written.
type hopes struct{ wrapper }

func (w hopes) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	a, err := w.Repository.Update(ctx, key, do)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		err = nil
	}
	return a, err
}

type detachedReads struct{ wrapper }

func (w detachedReads) Get(ctx context.Context, key repo.Key) (account, error) {
	return w.Repository.Get(context.WithoutCancel(ctx), key)
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

// wraps checks what every change leaves.
type wraps struct{ wrapper }

func (w wraps) Update(ctx context.Context, key repo.Key, do change) (account, error) {
	return w.Repository.Update(ctx, key, func(ctx context.Context, a *account) error { return do(ctx, a) })
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
	case "another client":
		inner := s.Open
		s.Open = func(tb testing.TB, _ *dynamodb.Client) repo.Repository[account] { return inner(tb, s.Client) }
	}
	repotest.Run(t, s)
}

var badSuites = map[string]string{
	"no Open":          "Suite.Open is nil",
	"Add adds nothing": "Suite.Add must make Count one more: it was 0, and is 0",
	"one key":          "Suite.New must give another id another key",
	"another client":   "Create sent no request by the client that Suite.Open was given",
}
