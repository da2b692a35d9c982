package crew

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

type event struct{ Who, What string }

// TestMain makes the test binary a member: one that fails, or one that waits to
// be told to end.
func TestMain(m *testing.M) {
	if !IsMember() {
		os.Exit(m.Run())
	}
	what, who := os.Args[1], os.Args[2]
	if what == "stubborn" {
		Main(func(ctx context.Context, _ []string, _, _ io.Writer) int {
			Say(event{who, "began"})
			<-ctx.Done()
			select {}
		})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := WithParent(ctx)
	Say(event{who, "began"})
	if what == "fail" {
		fmt.Print(`{"Who":"half a`)
		fmt.Fprintln(os.Stderr, "no luck")
		os.Exit(3)
	}
	<-ctx.Done()
	Say(event{who, "ended"})
	cancel()
	stop()
	os.Exit(0)
}

func members(what string, size int, grace time.Duration) Config {
	return Config{Prefix: "m", Size: size, Grace: grace, Args: func(name string) []string { return []string{what, name} }}
}

func TestWhyMembersFailed(t *testing.T) {
	c, err := Start[event](t.Context(), members("fail", 2, 0))
	if err != nil {
		t.Fatal(err)
	}
	heard := map[event]int{}
	for e := range c.Heard {
		heard[e]++
	}
	if len(heard) != 2 || heard[event{"m1", "began"}] != 1 || heard[event{"m2", "began"}] != 1 {
		t.Errorf("heard %v", heard)
	}
	errs := fmt.Sprint(c.Errs())
	for _, name := range c.Names {
		if want := name + ": exit status 3 no luck"; !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
}

func TestMembersEndByThemselves(t *testing.T) {
	if !CanPause {
		t.Skip("processes cannot be asked to end here")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Start[event](ctx, members("wait", 1, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for e := range c.Heard {
		said = append(said, e.What)
		cancel()
	}
	if got := strings.Join(said, " "); got != "began ended" {
		t.Errorf("said %q", got)
	}
	if errs := c.Errs(); len(errs) > 0 {
		t.Errorf("%v", errs)
	}
}

// TestMembersEndWithTheirParent starts one whose standard input nobody holds.
func TestMembersEndWithTheirParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "wait", "m1")
	cmd.Env = append(os.Environ(), memberEnv+"=1")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "ended") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestASecondInterruptEndsTheProgram although the program has not ended by the first.
func TestASecondInterruptEndsTheProgram(t *testing.T) {
	if !CanPause {
		t.Skip("processes cannot be asked to end here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "stubborn", "m1")
	cmd.Env = append(os.Environ(), memberEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	again := time.NewTicker(50 * time.Millisecond) // a person who loses patience
	defer again.Stop()
	for {
		select {
		case err = <-ended:
			if ctx.Err() != nil {
				t.Errorf("interrupted again and again, and goes on: %v", err)
			}
			return
		case <-again.C:
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
}

// TestDropEndsAndTells: a table that was never made is passed over, and a server that
// does not answer holds up the end of the program for a bounded time.
func TestDropEndsAndTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamodb.New(dynamodb.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: server{}})
		var errs bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		Drop(ctx, "test", &errs, client, "there", "never", "mute")
		if took := time.Since(began); took > dropping {
			t.Errorf("it took %v", took)
		}
		if text := errs.String(); strings.Count(text, "stay behind") != 1 || !strings.Contains(text, "table mute may stay behind") {
			t.Errorf("said %q", text)
		}
	})
}

// server deletes tables: one there is not, and of another it says nothing.
type server struct{}

// Do implements dynamodb.HTTPClient.
func (server) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, "{}"
	switch {
	case bytes.Contains(body, []byte("never")):
		status, text = http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"}`
	case bytes.Contains(body, []byte("mute")):
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text)), Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}}, nil
}
