// server: queues three requests, answers them, and looks at one more after it was freed. Built with
// AddressSanitizer, which prints the crash.
struct Request {
  int id;
  int bytes;
  Request *next;
};

template <class T>
class Queue {
 public:
  void push(T *item) {
    item->next = first_;
    first_ = item;
  }
  T *pop() {
    T *item = first_;
    first_ = item->next;
    return item;
  }
  T *peek() const { return first_; }

 private:
  T *first_ = nullptr;
};

class Server {
 public:
  void receive(int id) { queue_.push(new Request{id, 100 * id, nullptr}); }
  int answer();
  int run();

 private:
  int cost(const Request &request) const { return request.bytes + 20; }
  Queue<Request> queue_;
};

__attribute__((noinline)) int Server::answer() {
  Request *request = queue_.peek();
  delete request;
  return cost(*request);
}

__attribute__((noinline)) int Server::run() {
  int total = 0;
  while (queue_.peek() != nullptr) {
    total += answer();
  }
  return total;
}

int main() {
  Server server;
  for (int id = 1; id <= 3; id++) server.receive(id);
  int total = server.run();
  return total == 0;
}
