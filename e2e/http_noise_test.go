package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// requestSeeds are those of the gateway's FuzzRequest.
func requestSeeds(t *testing.T) (all [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../gateway/testdata/fuzz/FuzzRequest/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d seeds, %v", len(files), err)
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(string(file), "\n[]byte(")
		text, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, []byte(text))
	}
	return all
}

// send sends bytes and no more, and returns the statuses of what is answered
// before the server closes the connection.
func (s *server) send(t *testing.T, b []byte) (statuses []int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.http)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write(b) // it may be refused by now
	_ = conn.(*net.TCPConn).CloseWrite()
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			if wait, ok := err.(net.Error); ok && wait.Timeout() { //nolint:errorlint // as it comes from the connection
				t.Fatalf("%q: neither answered nor closed", b)
			}
			return statuses
		}
		statuses = append(statuses, resp.StatusCode)
		if resp.StatusCode == http.StatusContinue {
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); err != nil {
			return statuses
		}
	}
}

// TestHTTPNoise: requests that are odd, cut, and changed at random are answered
// by what they deserve, or their connection is closed, and nothing else is
// touched.
func TestHTTPNoise(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "kept", `{"partitions":1}`)
	s.post(t, recordsOf("kept", 0), `{"records":[{"key":"k","value":"v"}]}`).wantAppended(0, 0, 1)
	before := s.fetch(t, recordsOf("kept", 0)).want(200).body
	s.makeTopic(t, "t", `{"partitions":1}`)
	random := rand.New(rand.NewPCG(34, 34))
	seen := map[int]int{}
	send := func(b []byte) {
		for _, status := range s.send(t, b) {
			if seen[status]++; status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported {
				t.Errorf("%q: status %d", b, status)
			}
		}
	}
	for _, seed := range requestSeeds(t) {
		if strings.Contains(string(seed), "HTTP/1.1\r\nHost: h\r\n") && !strings.Contains(string(seed), "chunked") {
			send([]byte(strings.Repeat(string(seed), 3))) // pipelined
		}
		send(seed)
		for range count(10, 100) {
			send(seed[:random.IntN(len(seed))])
			changed := append([]byte(nil), seed...)
			for range 1 + random.IntN(3) {
				changed[random.IntN(len(changed))] = byte(random.IntN(256))
			}
			send(changed)
		}
	}
	for _, status := range []int{200, 400, 403, 404, 405, 413, 415, 501} {
		if seen[status] == 0 {
			t.Errorf("no answer has status %d: %v", status, seen)
		}
	}
	if after := s.fetch(t, recordsOf("kept", 0)).want(200).body; after != before {
		t.Errorf("%s, and before %s", after, before)
	}
	if errs := s.errors(); errs != "" {
		t.Errorf("logged: %.2000s", errs)
	}
	s.stop(t)
	check(t, s.dir)
}

// TestHTTPKilled: what HTTP has acknowledged is there after a kill -9, at its offset.
func TestHTTPKilled(t *testing.T) {
	dir := t.TempDir()
	acked := map[int64]string{}
	for round := range count(3, 30) {
		s := start(t, dir)
		if round == 0 {
			s.makeTopic(t, "t", `{"partitions":1}`)
		}
		for offset, value := range acked {
			p := s.fetch(t, fmt.Sprintf("%s?offset=%d&limit=1", recordsOf("t", 0), offset)).page()
			if len(p.Records) != 1 || p.Records[0].Offset != offset || p.Records[0].plain(t, "utf8").String() != value {
				t.Fatalf("round %d: %s was acknowledged at offset %d, and there is %+v", round, value, offset, p.Records)
			}
		}
		const writers, enough = 4, 50
		results := make(chan map[int64]string, writers)
		for w := range writers {
			go func() { results <- s.appendUntilKilled(fmt.Sprintf("%d-%d", round, w)) }()
		}
		eventually(t, "some are acknowledged", func() bool {
			status, body := s.get(t, "/api/v1/topics/t/partitions/0")
			var shown struct {
				High int `json:"high_watermark"`
			}
			return status == 200 && json.Unmarshal([]byte(body), &shown) == nil && shown.High >= (round+1)*enough
		})
		s.kill()
		for range writers {
			for offset, value := range <-results {
				if was, twice := acked[offset]; twice {
					t.Fatalf("%s and %s are both at offset %d", was, value, offset)
				}
				acked[offset] = value
			}
		}
	}
	if len(acked) == 0 {
		t.Error("nothing was acknowledged")
	}
	check(t, dir)
}

// appendUntilKilled appends one record after the other, until the server is
// gone, and says which were acknowledged where.
func (s *server) appendUntilKilled(name string) map[int64]string {
	acked := map[int64]string{}
	for i := 0; ; i++ {
		value := fmt.Sprintf("%s-%d", name, i)
		resp, err := webClient.Post("http://"+s.http+recordsOf("t", 0), "text/plain", strings.NewReader(value))
		if err != nil {
			return acked
		}
		var answer struct {
			Results []struct {
				Base int64 `json:"base_offset"`
			}
		}
		err = json.NewDecoder(resp.Body).Decode(&answer)
		if resp.Body.Close(); err != nil {
			return acked
		}
		if resp.StatusCode == http.StatusOK && len(answer.Results) == 1 {
			acked[answer.Results[0].Base] = value
		}
	}
}
