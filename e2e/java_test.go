package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// jars is the folder of Apache Kafka's classes; scripts/install fills it.
const jars = "../bin/kafka"

// virtualMachine runs Java's main methods one after the other or at once, see
// testdata/java/Driver.java. It starts when it is first asked.
type virtualMachine struct {
	once   sync.Once
	err    error
	cmd    *exec.Cmd
	port   net.Listener
	output string // file
}

var java virtualMachine

// Kafka's tools are in a jar that is loaded anew for each command.
var toolsJar = filepath.Join(jars, "kafka-tools-4.4.0.jar")

// start compiles what is in testdata/java into a folder, and runs the driver.
func (vm *virtualMachine) start(dir string) error {
	sources, err := filepath.Glob("testdata/java/*.java")
	if err != nil {
		return err
	}
	classpath := jars + "/*"
	compile := append([]string{"-cp", classpath, "-d", dir}, sources...)
	if out, err := exec.Command("javac", compile...).CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w (scripts/install kafka?): %s", err, out)
	}
	if vm.port, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	others, err := filepath.Glob(jars + "/*.jar")
	if err != nil {
		return err
	}
	path := []string{dir}
	for _, jar := range others {
		if jar != toolsJar {
			path = append(path, jar)
		}
	}
	vm.cmd = exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", strings.Join(path, ":"),
		"Driver", strconv.Itoa(vm.port.Addr().(*net.TCPAddr).Port), toolsJar)
	vm.output = filepath.Join(dir, "java.log")
	output, err := os.Create(vm.output)
	if err != nil {
		return err
	}
	defer output.Close()
	vm.cmd.Stdout, vm.cmd.Stderr = output, output
	return vm.cmd.Start()
}

// stuck adds to an error what all threads do.
func (vm *virtualMachine) stuck(err error) error {
	threads, _ := exec.Command("jstack", strconv.Itoa(vm.cmd.Process.Pid)).CombinedOutput()
	output, _ := os.ReadFile(vm.output)
	return fmt.Errorf("%w: %s%s", err, output, threads)
}

func (vm *virtualMachine) stop() {
	if vm.cmd != nil && vm.cmd.Process != nil {
		_ = vm.cmd.Process.Kill()
		_ = vm.cmd.Wait()
	}
}

// outcome is what a command leaves behind.
type outcome struct {
	stdout, stderr string
	code           int
}

// run runs a main method.
func (vm *virtualMachine) run(stdin, class string, args ...string) (o outcome, err error) {
	vm.once.Do(func() { vm.err = vm.start(filepath.Dir(program)) })
	if vm.err != nil {
		return o, vm.err
	}
	_ = vm.port.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := vm.port.Accept()
	if err != nil {
		return o, vm.stuck(fmt.Errorf("Java's driver does not call: %w", err))
	}
	defer conn.Close()
	words := append([]string{class}, args...)
	request := binary.BigEndian.AppendUint32(nil, uint32(len(words)))
	for _, text := range append(words, stdin) {
		request = append(binary.BigEndian.AppendUint32(request, uint32(len(text))), text...)
	}
	_ = conn.SetDeadline(time.Now().Add(4 * patience))
	if _, err := conn.Write(request); err != nil {
		return o, err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return o, vm.stuck(err)
	}
	next := func() (n uint32) {
		if len(answer) < 4 {
			err = errors.New("Java's driver is gone")
			return 0
		}
		n, answer = binary.BigEndian.Uint32(answer), answer[4:]
		return n
	}
	o.code = int(int32(next()))
	for _, stream := range []*string{&o.stdout, &o.stderr} {
		n := min(int(next()), len(answer))
		*stream, answer = string(answer[:n]), answer[n:]
	}
	return o, err
}

// run runs a main method, which must succeed, and returns what it prints.
func (s *server) java(t *testing.T, stdin, class string, args ...string) string {
	t.Helper()
	o, err := java.run(stdin, class, args...)
	if err != nil {
		t.Fatalf("%s %q: %v", class, args, err)
	}
	if o.code != 0 {
		t.Fatalf("%s %q: code %d\n%s%s", class, args, o.code, o.stdout, o.stderr)
	}
	return o.stdout
}
