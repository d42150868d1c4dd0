package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/siltstone-io/siltstone/localstack/servers"
)

// stack is both stores, in a folder.
type stack struct {
	dir, minio, aws string
}

func (s *stack) register(f *flag.FlagSet) {
	f.StringVar(&s.dir, "dir", filepath.Join("localstack", "run"), "`folder` of data, logs and the env file")
	f.StringVar(&s.minio, "minio", "127.0.0.1:9000", "`address` of MinIO")
	f.StringVar(&s.aws, "aws", "127.0.0.1:4566", "`address` of the emulator of AWS")
}

func (s *stack) servers() []servers.Server {
	return []servers.Server{servers.MinIO(s.dir, s.minio), servers.AWS(s.dir, s.aws)}
}

// up starts what does not run. Where one of the two does not come to answer, it
// ends what it has started.
func (s *stack) up(ctx context.Context, out io.Writer) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	all := s.servers()
	started := make([]bool, len(all))
	g, running := errgroup.WithContext(ctx)
	for i, server := range all {
		g.Go(func() (err error) {
			_, started[i], err = server.StartOnce(running, s.dir)
			return err
		})
	}
	if err = g.Wait(); err == nil {
		err = s.writeEnv()
	}
	for i, server := range all {
		switch {
		case err != nil && started[i]:
			_, stopErr := server.Stop(s.dir)
			err = errors.Join(err, stopErr)
		case err == nil && started[i]:
			fmt.Fprintf(out, "%s serves at http://%s\n", server.Name, server.Addr)
		case err == nil:
			fmt.Fprintf(out, "%s serves at http://%s, as it did before\n", server.Name, server.Addr)
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nIn a shell that is to use them:  . %s\n", s.envFile())
	return nil
}

// down ends what runs of what up has started. The data stays.
func (s *stack) down(out io.Writer) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	err = os.RemoveAll(s.envFile())
	for _, server := range s.servers() {
		stopped, stopErr := server.Stop(s.dir)
		err = errors.Join(err, stopErr)
		if stopped && stopErr == nil {
			fmt.Fprintf(out, "%s has ended\n", server.Name)
		}
	}
	return err
}

// lock keeps two calls from being at work on one folder, and makes the folder.
func (s *stack) lock() (unlock func(), err error) {
	// The servers are started with their own paths, whatever folder they run in.
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(s.dir, 0o750); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another make up or make down is at work on %s: %w", s.dir, err)
	}
	return func() { f.Close() }, nil
}

func (s *stack) envFile() string { return filepath.Join(s.dir, "env") }

func (s *stack) writeEnv() error {
	half := s.envFile() + ".new"
	if err := os.WriteFile(half, []byte(s.env()), fs.FileMode(0o600)); err != nil {
		return err
	}
	return os.Rename(half, s.envFile())
}

// env is a shell file. The variables of AWS are those that all of its tools and
// SDKs know: the emulator for everything, but MinIO for S3.
func (s *stack) env() string {
	return fmt.Sprintf(`# The stores of make up, for a shell.
export AWS_ENDPOINT_URL=http://%[1]s
export AWS_ENDPOINT_URL_S3=http://%[2]s
export AWS_ACCESS_KEY_ID=%[3]s
export AWS_SECRET_ACCESS_KEY=%[4]s
export AWS_REGION=%[5]s
export AWS_DEFAULT_REGION=%[5]s
export AWS_EC2_METADATA_DISABLED=true
export SILTSTONE_BUCKET='minio://%[2]s/%[6]s'
export SILTSTONE_COORDINATOR='dynamodb://siltstone?region=%[5]s&endpoint=http://%[1]s'
`, s.aws, s.minio, servers.AccessKey, servers.SecretKey, servers.Region, servers.BucketName)
}
