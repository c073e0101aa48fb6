// A group of processes that work on command: one line to each, one line back from each.
#pragma once

#include <string>
#include <vector>

#include "accordion/launch/child.h"

namespace accordion::bench {

// Whether the program can be started and exits 0. What it prints is lost.
bool runs(const std::vector<std::string>& argv);

class Crew {
 public:
  // `name` leads messages. The specs' processes read commands from standard input.
  Crew(std::string name, const std::vector<WorkerSpec>& specs);
  ~Crew();  // Ends its processes.
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Sends the command to all and waits for all answers: the numbers after "ok", per member. Throws an Error
  // with a member's last words when it dies, answers something else, or takes longer than `seconds`.
  std::vector<std::vector<double>> command(const std::string& line, double seconds = 300);

 private:
  struct Member {
    Child child;
    std::string answer, words;
  };
  bool read_answer(Member& member);

  std::string name_;
  std::vector<Member> members_;
};

}  // namespace accordion::bench
