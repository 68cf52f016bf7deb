package judge

import "testing"

func TestPlainNames(t *testing.T) {
	for name, want := range map[string]string{
		"ledger::Book::close()":                                   "ledger::Book::close",
		"ledger::Book::close(int (*)(int), int)":                  "ledger::Book::close",
		"ledger::Book::total() const":                             "ledger::Book::total",
		"int ledger::sum<int, (ledger::Kind)1>(std::vector<int>)": "ledger::sum",
		"ledger::sum<>()":                                         "ledger::sum",
		"google::LogMessageFatal::~LogMessageFatal()":             "google::LogMessageFatal::~LogMessageFatal",
		"(anonymous namespace)::settle(int)":                      "{anonymous}::settle",
		"Book::operator()(int) const":                             "Book::operator()",
		"std::ostream& operator<<(std::ostream&, Book const&)":    "operator<<",
		"Book::operator int() const":                              "Book::operator int",
		"Book::operator->()":                                      "Book::operator->",
		"ledger::settle(int) [clone .cold]":                       "ledger::settle",
		"ledger::name[abi:cxx11](int)":                            "ledger::name",
		"ledger_audit":                                            "ledger_audit",
		"":                                                        "",
		"a<(b":                                                    "a",
		")>":                                                      "",
	} {
		if got := plainName(name); got != want {
			t.Errorf("plainName(%q) = %q, want %q", name, got, want)
		}
	}
}
