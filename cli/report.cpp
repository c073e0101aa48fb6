// accordion report: run folders, or the folder of a comparison, as one page that opens from disk.
#include <filesystem>
#include <iostream>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/log/write_file.h"
#include "accordion/report/page.h"
#include "accordion/report/page_data.h"
#include "cli/run_command.h"
#include "cli/verbs.h"

namespace accordion::cli {

Run add_report(CLI::App& verb) {
  struct Arguments {
    std::vector<std::string> folders;
    std::string out;
  };
  auto arguments = std::make_shared<Arguments>();
  verb.add_option("folder", arguments->folders, "Run folders, or folders that `compare` made.");
  verb.add_option("-o,--out", arguments->out,
                  "File to write; report.html in the folder, or here where there are several, unless given.");
  return [arguments] {
    const std::vector<std::filesystem::path> folders(arguments->folders.begin(), arguments->folders.end());
    if (folders.empty())
      throw UsageError("report: no folder, expected those of runs, or of a comparison (runs/compare-demo)");
    std::filesystem::path out = arguments->out;
    if (out.empty()) out = folders.size() == 1 ? folders[0] / "report.html" : "report.html";
    write_whole(out, report_page(page_data(read_reported_runs(folders), {run_command, compare_command}),
                                 PageKind::kFile));
    std::cout << "Report: " << out.string() << " (a page for any browser; it needs no network)" << std::endl;
    return 0;
  };
}

}  // namespace accordion::cli
