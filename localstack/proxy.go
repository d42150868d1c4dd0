package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/siltstone-io/siltstone/localstack/faultproxy"
)

// proxy is a fault proxy as a process.
type proxy struct {
	listen, control string
	options         faultproxy.Options
}

func (p *proxy) register(f *flag.FlagSet) {
	f.StringVar(&p.listen, "listen", "127.0.0.1:9100", "`address` for requests to the store")
	f.StringVar(&p.control, "control", "127.0.0.1:9101", "`address` that sets faults and shows counts: see faultproxy.Proxy.Control")
	f.StringVar(&p.options.Upstream, "upstream", "http://127.0.0.1:9000", "`URL` of the store")
	f.StringVar(&p.options.Secret, "secret", "", "secret `key` of whoever signs requests, for faults that sign them anew")
	f.Uint64Var(&p.options.Seed, "seed", 1, "`seed` of faults that take a share of requests")
}

// run serves until ctx ends.
func (p *proxy) run(ctx context.Context, out io.Writer) error {
	handler, err := faultproxy.New(p.options)
	if err != nil {
		return err
	}
	g, running := errgroup.WithContext(ctx)
	for addr, h := range map[string]http.Handler{p.listen: handler, p.control: handler.Control()} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
		context.AfterFunc(running, func() { _ = s.Close() })
		g.Go(func() error { return s.Serve(l) })
	}
	fmt.Fprintf(out, "%s goes to %s; faults and counts are at http://%s\n", p.listen, p.options.Upstream, p.control)
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}
