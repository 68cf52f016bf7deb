//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromiumCommand is Debian's Chromium without the parts for a desktop.
const chromiumCommand = "chromium-headless-shell"

// A chromium is a running browser. Tests use its DevTools protocol over two pipes: JSON messages,
// each followed by a NUL byte. See https://chromedevtools.github.io/devtools-protocol/.
type chromium struct {
	requests *os.File

	mu      sync.Mutex
	last    int                     // ID of the last request
	waiting map[int]chan devMessage // by ID of the request
	tabs    map[string]*tab         // by ID of the session
	err     error                   // reason why no further message can come
}

// A devMessage is a reply, which has an ID, or an event, which has a Method.
type devMessage struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// chromiumPatience bounds one request. A page of 100 MB loads in 8 s on the slowest test machine.
const chromiumPatience = 2 * time.Minute

// startChromium starts a browser with additional flags. The browser ends with the test.
func startChromium(t *testing.T, flags ...string) *chromium {
	t.Helper()
	need(t, chromiumCommand)
	toBrowser, requests, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	replies, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := append([]string{
		"--remote-debugging-pipe", "--user-data-dir=" + dir, "--no-first-run",
		"--no-sandbox",            // needed by root; all pages come from the test
		"--disable-gpu",           // software rendering, since the machine may have no GPU
		"--disable-dev-shm-usage", // /dev/shm of a container has 64 MB
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
	}, flags...)
	cmd := exec.Command(chromiumCommand, args...)
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // descriptors 3 and 4
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Start()
	toBrowser.Close()
	fromBrowser.Close()
	if err != nil {
		t.Fatal(err)
	}
	b := &chromium{requests: requests, waiting: map[int]chan devMessage{}, tabs: map[string]*tab{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(replies)
	}()
	t.Cleanup(func() {
		b.send("", "Browser.close", nil)
		<-read // the browser has closed its end of the pipe
		requests.Close()
		replies.Close()
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("%s: %v\n%s", chromiumCommand, err, stderr.Bytes())
		}
	})
	return b
}

// read passes replies to the waiting callers, and events to their tabs, until the browser ends.
func (b *chromium) read(replies io.Reader) {
	r := bufio.NewReader(replies)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.err = fmt.Errorf("the browser ended: %w", err)
			for _, c := range b.waiting {
				close(c)
			}
			b.waiting = nil
			return
		}
		var m devMessage
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; c != nil {
			delete(b.waiting, m.ID)
			c <- m
		} else if tab := b.tabs[m.SessionID]; tab != nil && m.Method != "" {
			tab.event(m)
		}
		b.mu.Unlock()
	}
}

func (b *chromium) send(session, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), chromiumPatience)
	defer cancel()
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		encoded = []byte("{}")
	}
	reply := make(chan devMessage, 1)
	b.mu.Lock()
	if b.err != nil {
		b.mu.Unlock()
		return nil, b.err
	}
	b.last++
	id := b.last
	b.waiting[id] = reply
	data, err := json.Marshal(devMessage{ID: id, SessionID: session, Method: method, Params: encoded})
	if err == nil {
		_, err = b.requests.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-reply:
		switch {
		case !ok:
			return nil, errors.New("the browser ended")
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// A tab is a page with its own cookies and settings.
type tab struct {
	browser *chromium
	session string
	loaded  chan struct{} // has a value after each load

	noScripts bool

	// guarded by browser.mu
	messages []string // console messages, exceptions, and the browser's reports about the page
	fetched  []string // addresses of all requests
}

// pageOptions are the size and the colour scheme. The zero value is 1,000 by 800 pixels, light.
type pageOptions struct {
	width, height int
	dark          bool
	noScripts     bool
}

// open opens an address in a new tab, and waits until the page has loaded.
func (b *chromium) open(t *testing.T, address string, o pageOptions) *tab {
	t.Helper()
	if o.width == 0 {
		o.width = 1000
	}
	if o.height == 0 {
		o.height = 800
	}
	scheme := "light"
	if o.dark {
		scheme = "dark"
	}
	var context struct {
		ID string `json:"browserContextId"`
	}
	b.mustSend(t, "", "Target.createBrowserContext", nil, &context)
	var target struct {
		ID string `json:"targetId"`
	}
	b.mustSend(t, "", "Target.createTarget", map[string]any{
		"url": "about:blank", "browserContextId": context.ID, "width": o.width, "height": o.height,
	}, &target)
	var session struct {
		ID string `json:"sessionId"`
	}
	b.mustSend(t, "", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session)
	p := &tab{browser: b, session: session.ID, loaded: make(chan struct{}, 100), noScripts: o.noScripts}
	b.mu.Lock()
	b.tabs[session.ID] = p
	b.mu.Unlock()
	t.Cleanup(func() { b.send("", "Target.disposeBrowserContext", map[string]any{"browserContextId": context.ID}) })
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.send(t, domain+".enable", nil, nil)
	}
	p.send(t, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": o.width, "height": o.height, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	p.send(t, "Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
	p.send(t, "Emulation.setScriptExecutionDisabled", map[string]any{"value": o.noScripts}, nil)
	p.navigate(t, address)
	return p
}

func (b *chromium) mustSend(t *testing.T, session, method string, params, result any) {
	t.Helper()
	data, err := b.send(session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(data, result)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *tab) send(t *testing.T, method string, params, result any) {
	t.Helper()
	p.browser.mustSend(t, p.session, method, params, result)
}

// navigate opens another address, and waits until the page has loaded.
func (p *tab) navigate(t *testing.T, address string) {
	t.Helper()
	var started struct {
		ErrorText string `json:"errorText"`
		LoaderID  string `json:"loaderId"` // empty if only the fragment changed
	}
	p.send(t, "Page.navigate", map[string]any{"url": address}, &started)
	if started.ErrorText != "" {
		t.Fatalf("%s: %s", address, started.ErrorText)
	}
	if started.LoaderID == "" {
		return
	}
	select {
	case <-p.loaded:
	case <-time.After(chromiumPatience):
		t.Fatalf("%s: not loaded", address)
	}
}

// event records an event of the page. browser.mu is held.
func (p *tab) event(m devMessage) {
	switch m.Method {
	case "Page.loadEventFired":
		p.loaded <- struct{}{}
	case "Runtime.consoleAPICalled":
		p.messages = append(p.messages, "console: "+string(m.Params))
	case "Runtime.exceptionThrown":
		p.messages = append(p.messages, "exception: "+string(m.Params))
	case "Log.entryAdded":
		p.messages = append(p.messages, "browser: "+string(m.Params))
	case "Network.requestWillBeSent":
		var r struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if json.Unmarshal(m.Params, &r) == nil {
			p.fetched = append(p.fetched, r.Request.URL)
		}
	}
}

// printed returns the messages of the page.
func (p *tab) printed() []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return append([]string{}, p.messages...)
}

func (p *tab) requested() []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return append([]string{}, p.fetched...)
}

// value returns the value of a JavaScript expression, or the result of a promise.
func value[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	var reply struct {
		Result struct {
			Value T `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	p.send(t, "Runtime.evaluate", map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true,
	}, &reply)
	if e := reply.Exception; e != nil {
		t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	return reply.Result.Value
}

// until waits at most 20 s until a JavaScript expression is true. It evaluates the expression once
// a frame.
func (p *tab) until(t *testing.T, expression string) {
	t.Helper()
	if !value[bool](t, p, `(async () => {
		for (const end = performance.now() + 20000; performance.now() < end;) {
			if (`+expression+`) return true;
			await new Promise(next => requestAnimationFrame(next));
		}
		return false;
	})()`) {
		t.Fatalf("never true: %s; the page:\n%s", expression, value[string](t, p, "document.body.innerText.slice(0, 3000)"))
	}
}

// click clicks on the first element that matches the selector, once its position has not changed
// for five frames: the page may still be scrolling.
func (p *tab) click(t *testing.T, selector string) {
	t.Helper()
	quoted, err := json.Marshal(selector)
	if err != nil {
		t.Fatal(err)
	}
	at := value[[]float64](t, p, `(async () => {
		const e = document.querySelector(`+string(quoted)+`);
		if (!e) return [];
		for (let last = NaN, same = 0; same < 5;) {
			const r = e.getClientRects()[0];
			if (!r) return [];
			same = r.y === last ? same + 1 : 0;
			if (!same) e.scrollIntoView({block: 'center', behavior: 'instant'});
			last = e.getClientRects()[0].y;
			if (`+strconv.FormatBool(p.noScripts)+`) break; // without scripts, a page does not scroll by itself, and has no timers
			await new Promise(requestAnimationFrame);
		}
		const r = e.getClientRects()[0];
		return [r.x + r.width/2, r.y + r.height/2];
	})()`)
	if len(at) != 2 {
		t.Fatalf("no element to click: %s", selector)
	}
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		params := map[string]any{"type": kind, "x": at[0], "y": at[1]}
		if kind != "mouseMoved" {
			params["button"], params["clickCount"] = "left", 1
		}
		p.send(t, "Input.dispatchMouseEvent", params, nil)
	}
}

// keys has the key codes for press.
var keys = map[string]int{
	"Enter": 13, "Escape": 27, "Tab": 9, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
	"ArrowUp": 38, "ArrowDown": 40, "F3": 114, "/": 191,
}

// press presses a key, such as "Enter" or "Shift+F3".
func (p *tab) press(t *testing.T, key string) {
	t.Helper()
	modifiers := 0
	if rest, ok := strings.CutPrefix(key, "Shift+"); ok {
		key, modifiers = rest, 8
	}
	code, ok := keys[key]
	if !ok {
		t.Fatalf("unknown key %q", key)
	}
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
	switch key {
	case "Enter":
		down["text"] = "\r"
	case " ", "/":
		down["text"] = key
	}
	p.send(t, "Input.dispatchKeyEvent", down, nil)
	p.send(t, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}, nil)
}

func (p *tab) screenshot(t *testing.T) []byte {
	t.Helper()
	var shot struct{ Data string }
	p.send(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		t.Fatal(err)
	}
	return png
}
